//! Tests several processes with one store: a shell decides on a call that waits in the service, and a second process of
//! the service continues after the first was killed.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A folder with the store and the orders that the processes share.
struct Rig {
    folder: tempfile::TempDir,
}

/// A process of the service, killed at the end.
struct Service {
    process: Child,
    address: String,
}

impl Rig {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.path("chats.db").display())
    }

    fn start(&self, variables: &[(&str, &str)]) -> Service {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chat-service"));
        command.env("CHAT_LISTEN", "127.0.0.1:0").env("CHAT_STORE", self.store());
        command.env("CHAT_ORDERS", self.path("orders")).env("CHAT_TOKENS", "a=ada,e=eve@other");
        command.env_remove("CHAT_MODEL_URL").envs(variables.iter().copied());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Service { process, address }
    }

    /// Runs a command of the program on the store, as in a shell.
    fn shell(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chat-service"));
        command.current_dir(self.folder.path()).args(["--json", "--store", &self.store()]).args(words);
        command.output().unwrap()
    }

    /// Returns the waiting calls, as `approvals list` prints them for the tenant.
    fn listed(&self) -> Vec<Value> {
        let listed = self.shell(&["approvals", "list"]);
        assert!(listed.status.success(), "{listed:?}");
        serde_json::from_slice(&listed.stdout).unwrap()
    }

    /// Returns the orders that all processes have placed.
    fn orders(&self) -> usize {
        fs::read_to_string(self.path("orders")).unwrap_or_default().lines().count()
    }
}

impl Service {
    /// Sends a request. Returns the status and the body, without the marks of its chunks.
    fn send(&self, head: &str, token: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nhost: service\r\nauthorization: Bearer {token}\r\ncontent-length: \
             {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post(&self, body: &Value) -> (u16, String) {
        self.send("POST /api/chat", "a", &body.to_string())
    }

    fn state(&self) -> Value {
        let (status, body) = self.send("GET /api/chats/c", "a", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until no turn of the chat runs and its last message has this text.
    fn reaches(&self, text: &str) -> Value {
        loop {
            let state = self.state();
            let last = state["messages"].as_array().unwrap().last().cloned().unwrap_or_default();
            if state["running"] == false && last["text"].as_str().is_some_and(|last| last.contains(text)) {
                return state;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

fn says(text: &str) -> Value {
    json!({ "id": "c", "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": text }] }] })
}

fn approves(question: &str) -> Value {
    let call = question.split_once('.').unwrap().1;
    let approval = json!({ "id": question, "approved": true });
    let part =
        json!({ "type": "tool-stock__order", "toolCallId": call, "state": "approval-responded", "approval": approval });
    json!({ "id": "c", "messages": [{ "id": "m2", "role": "assistant", "parts": [part] }] })
}

/// Orders, and returns the id and the question of the call that waits.
fn ordered(service: &Service) -> (String, String) {
    orders(service, "order 3 hinge")
}

fn orders(service: &Service, text: &str) -> (String, String) {
    let (status, stream) = service.post(&says(text));
    assert_eq!(status, 200, "{stream}");
    let waits = service.state()["waiting"][0].clone();
    (waits["call"].as_str().unwrap().to_owned(), waits["question"].as_str().unwrap().to_owned())
}

#[test]
fn a_decision_in_a_shell_reaches_the_service() {
    let rig = Rig::new();
    let service = rig.start(&[]);
    let (call, question) = ordered(&service);
    assert_eq!(rig.listed().iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), [json!(call)]);

    // A shell of another tenant gets the answer for a call that does not exist. The run has a record of the attempt.
    let stranger = |id: &str| rig.shell(&["--tenant", "other", "approvals", "approve", id, "--as", "grace"]);
    let (refused, unknown) = (stranger(&call), stranger("call_none"));
    assert_eq!((refused.status.code(), unknown.status.code()), (Some(2), Some(2)));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(told.replace(&call, "call_none"), String::from_utf8(unknown.stderr).unwrap());
    let audit = String::from_utf8(rig.shell(&["audit", "show"]).stdout).unwrap();
    assert!(audit.contains("decider_tenant"), "{audit}");
    // With another tenant's token, the same id names another chat.
    let (status, body) = service.send("POST /api/chat", "e", &approves(&question).to_string());
    assert_eq!(status, 409, "{body}");
    assert_eq!(rig.orders(), 0);

    let approved = rig.shell(&["approvals", "approve", &call, "--as", "grace"]);
    assert!(approved.status.success(), "{approved:?}");
    service.reaches("About the order: 1001");
    assert_eq!((rig.orders(), rig.listed().len()), (1, 0));

    // The decision comes twice: from the page, and from the shell.
    let (status, body) = service.post(&approves(&question));
    assert_eq!(status, 409, "{body}");
    assert_eq!(rig.shell(&["approvals", "approve", &call, "--as", "grace"]).status.code(), Some(2));
    assert_eq!(rig.orders(), 1);
    // The chat continues.
    assert_eq!(service.post(&says("hello")).0, 200);
    service.reaches("You said: hello");
    assert!(rig.shell(&["audit", "verify"]).status.success());
}

/// A large order needs two people: one approves on the page, and the other one in a shell.
#[test]
fn two_people_approve_a_large_order() {
    let rig = Rig::new();
    let service = rig.start(&[]);
    let (call, question) = orders(&service, "order 300 hinge");
    let waits = || {
        let waits = service.state()["waiting"][0].clone();
        (waits["required"].clone(), waits["approvedBy"].clone(), waits["mayDecide"].clone())
    };
    assert_eq!(waits(), (json!(2), json!([]), json!(true)));
    let (status, stream) = service.post(&approves(&question));
    assert_eq!(status, 200, "{stream}");
    assert_eq!(waits(), (json!(2), json!(["ada"]), json!(false)));
    let (status, body) = service.post(&approves(&question));
    assert!(status == 403 && body.contains("same_decider") || status == 409, "{status} {body}");
    // The decider is the person of the token; a name in the body has no effect.
    let mut claimed = approves(&question);
    let other = json!({ "principal": "grace", "tenant": "acme" });
    for place in ["", "/messages/0", "/messages/0/parts/0", "/messages/0/parts/0/approval"] {
        let members = claimed.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
        members
            .extend([("decider", &other), ("metadata", &other)].map(|(name, value)| (name.to_owned(), value.clone())));
    }
    let (status, body) = service.post(&claimed);
    assert_ne!(status, 200, "{body}");
    assert_eq!(waits(), (json!(2), json!(["ada"]), json!(false)));
    assert_eq!(rig.orders(), 0);
    assert!(rig.shell(&["approvals", "approve", &call, "--as", "grace"]).status.success());
    service.reaches("About the order: 1001");
    assert_eq!(rig.orders(), 1);
    assert!(rig.shell(&["audit", "verify"]).status.success());
}

#[test]
fn a_second_process_continues_after_the_first_was_killed() {
    let rig = Rig::new();
    let first = rig.start(&[]);
    let (call, question) = ordered(&first);
    first.kill();

    // The decision comes while no process runs. The second process carries it out, without a request.
    assert!(rig.shell(&["approvals", "approve", &call, "--as", "grace"]).status.success());
    assert_eq!(rig.orders(), 0);
    let second = rig.start(&[]);
    second.reaches("About the order: 1001");
    assert_eq!(second.post(&approves(&question)).0, 409);
    assert_eq!(rig.orders(), 1);

    // The decision comes from the page of the second process.
    let (_, question) = ordered(&second);
    second.kill();
    let third = rig.start(&[]);
    let (status, stream) = third.post(&approves(&question));
    assert_eq!(status, 200, "{stream}");
    third.reaches("About the order: 1002");
    assert_eq!(rig.orders(), 2);
    assert!(rig.shell(&["audit", "verify"]).status.success());
}

/// The first process is killed while it waits for its model. Its lease ends after half a minute, and then the second
/// process sends the request to its own model.
#[test]
fn a_turn_is_continued_after_its_process_was_killed() {
    let rig = Rig::new();
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", model.local_addr().unwrap());
    let first = rig.start(&[("CHAT_MODEL_URL", &url), ("CHAT_MODEL", "silent")]);
    let address = first.address.clone();
    let asking = std::thread::spawn(move || {
        let body = says("hello").to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(stream, "POST /api/chat HTTP/1.1\r\nhost: service\r\nauthorization: Bearer a\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut response = Vec::new();
        // The connection breaks when the process is killed.
        let _broken = stream.read_to_end(&mut response);
    });
    // The model has got a request, so the turn has begun.
    let asked = model.accept().unwrap();
    let second = rig.start(&[]);
    assert_eq!(second.state()["running"], true);
    assert_eq!(second.post(&says("and?")).0, 409, "the first has the chat");
    first.kill();
    asking.join().unwrap();
    drop(asked);
    second.reaches("You said: hello");
    assert_eq!(second.post(&says("again")).0, 200);
    second.reaches("You said: again");
}
