//! Tests the program on a pseudo-terminal: questions, the prompt loop and interrupts.

use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, call, text};
use crate::rig::{Rig, TASK};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A program on a terminal.
pub(crate) struct Session {
    child: Child,
    pty: Arc<Pty>,
    seen: Arc<Mutex<String>>,
    /// Ends with the last of the output.
    reader: JoinHandle<()>,
    /// The length of the output up to the last awaited text.
    read: usize,
    marks: Vec<usize>,
}

impl Session {
    pub(crate) fn start(rig: &Rig, words: &[&str]) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(40, 100)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolbox"));
        command = command.args(words).current_dir(rig.folder()).env_clear().envs(rig.environment());
        let child = command.spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let seen = Arc::new(Mutex::new(String::new()));
        let (terminal, output) = (Arc::clone(&pty), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = (&*terminal).read(&mut buffer) {
                output.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Self { child, pty, seen, reader, read: 0, marks: Vec::new() }
    }

    /// Waits for a text after the previous awaited one.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) {
        loop {
            // Checked before `seen` is read, so that `seen` holds all output if the reader has ended.
            let has_ended = self.reader.is_finished();
            let seen = self.seen.lock().unwrap().clone();
            if let Some(at) = seen[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(!has_ended, "`{text}` did not come: {seen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Remembers the length of the output up to the last awaited text.
    pub(crate) fn mark(&mut self) {
        self.marks.push(self.read);
    }

    pub(crate) fn marks(&self) -> Vec<usize> {
        self.marks.clone()
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        // The last output may still be in the terminal's buffer.
        self.reader.join().unwrap();
        (status.code().unwrap_or(-1), self.seen.lock().unwrap().clone())
    }
}

fn rig(endpoint: &Endpoint) -> Rig {
    let mut rig = Rig::new();
    rig.set("TOOLBOX_MODEL_URL", &endpoint.url).set("TOOLBOX_MODEL", "m").set("NO_COLOR", "1");
    rig
}

fn mail() -> Value {
    call("c1", "mail__send_email", &json!({"to": ["a@example.com"], "subject": "Lunch", "body": "TOP-SECRET"}))
}

const SEND: [&str; 3] = ["chat", "--no-stream", "Send it."];

#[test]
fn a_person_looks_at_masked_values_and_approves() {
    let endpoint = Endpoint::new(vec![mail(), text("Sent.")]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &SEND);
    session.expect("Let me see.");
    session.expect("\n-> mail__send_email");
    session.expect("allow mail__send_email?");
    assert!(!session.seen.lock().unwrap().contains("TOP-SECRET"));
    session.type_in("v\r");
    session.expect("TOP-SECRET");
    session.expect("allow mail__send_email?");
    session.type_in("?\r");
    session.expect("\r\n   y           let it run\r\n   n [REASON]  refuse it");
    session.expect("allow mail__send_email?");
    session.type_in("y\r");
    session.expect("Sent.");
    assert_eq!(session.end().0, 0);
    assert_eq!(rig.mails(), 1);
}

/// The result shows the arguments only if the person changed them after the question.
#[test]
fn arguments_are_shown_once() {
    let edited = json!({"to": ["a@example.com"], "subject": "Lunch?", "body": "Now?"}).to_string();
    for (edited, shown) in [(None, 1), (Some(edited), 2)] {
        let endpoint = Endpoint::new(vec![mail(), text("Sent.")]);
        let rig = rig(&endpoint);
        let mut session = Session::start(&rig, &SEND);
        session.expect("allow mail__send_email?");
        if let Some(edited) = edited {
            session.type_in("e\r");
            session.expect("arguments: ");
            // Ctrl-U removes the present text.
            session.type_in(&format!("\u{15}{edited}\r"));
        } else {
            session.type_in("y\r");
        }
        session.expect("Sent.");
        let (code, seen) = session.end();
        assert_eq!((code, arguments_in(&seen)), (0, shown), "{seen}");
    }
}

/// Returns the number of lines with the recipients of a mail.
fn arguments_in(seen: &str) -> usize {
    seen.lines().filter(|line| line.starts_with("   to       [")).count()
}

#[test]
fn arguments_are_shown_once_when_a_conversation_continues() {
    let endpoint = Endpoint::new(vec![mail(), text("Sent.")]);
    let rig = rig(&endpoint);
    rig.run(&SEND).code(5);
    let mut session = Session::start(&rig, &["chat", "--no-stream", "--continue"]);
    session.expect("allow mail__send_email?");
    session.type_in("y\r");
    session.expect("Sent.");
    session.expect("> ");
    session.type_in("/quit\r");
    let (code, seen) = session.end();
    assert_eq!((code, arguments_in(&seen)), (0, 1), "{seen}");
}

#[test]
fn an_interrupt_at_the_question_leaves_the_call_waiting() {
    for term in ["xterm", "dumb"] {
        let endpoint = Endpoint::new(vec![mail()]);
        let mut rig = rig(&endpoint);
        rig.set("TERM", term);
        let mut session = Session::start(&rig, &SEND);
        session.expect("allow mail__send_email?");
        session.type_in(CTRL_C);
        let (code, shown) = session.end();
        assert_eq!(code, 5, "{term}: {shown}");
        assert!(shown.contains("toolbox approvals show c1"), "{term}: {shown}");
        assert_eq!((rig.mails(), rig.waiting().len()), (0, 1), "{term}");
    }
}

#[test]
fn a_refusal_has_a_reason() {
    let endpoint = Endpoint::new(vec![mail(), text("Then not.")]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &SEND);
    session.expect("allow mail__send_email?");
    session.type_in("n not before noon\r");
    session.expect("Then not.");
    assert_eq!(session.end().0, 0);
    endpoint.request();
    assert!(endpoint.request().to_string().contains("not before noon"));
    assert_eq!(rig.mails(), 0);
}

#[test]
fn the_prompt_loop_survives_an_interrupted_turn() {
    let list = call("c1", "tasks__list_tasks", &json!({}));
    let endpoint = Endpoint::new(vec![text("Good morning."), Value::Null, list, text("Five.")]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &["chat", "--no-stream", "--role", "clerk"]);
    session.expect("> ");
    session.type_in("Hello\r");
    session.expect("Good morning.");
    session.expect("> ");
    session.type_in("Are you there?\r");
    endpoint.request();
    endpoint.request();
    session.type_in(CTRL_C);
    session.expect("interrupted");
    session.expect("> ");
    session.type_in("How many tasks?\r");
    session.expect("<- ok tasks__list_tasks");
    session.expect("Five.");
    session.expect("> ");
    session.type_in(CTRL_D);
    let (code, shown) = session.end();
    assert_eq!(code, 0, "{shown}");
    let (_, command) = shown.split_once("continue with: toolbox chat --conversation").expect(&shown);
    assert!(command.lines().next().unwrap().trim_end().ends_with(" --role clerk"), "{shown}");
}

#[test]
fn a_file_goes_with_the_first_line_of_the_prompt_loop() {
    let endpoint = Endpoint::new(vec![text("Two."), text("Yes.")]);
    let rig = rig(&endpoint);
    rig.write("list.csv", "a,b");
    let mut session = Session::start(&rig, &["chat", "--no-stream", "--file", "list.csv"]);
    session.expect("> ");
    session.type_in("How many columns?\r");
    session.expect("Two.");
    session.expect("> ");
    session.type_in("Sure?\r");
    session.expect("Yes.");
    session.expect("> ");
    session.type_in(CTRL_D);
    assert_eq!(session.end().0, 0);
    let first = endpoint.request();
    assert!(first["messages"][1]["content"].to_string().contains("list.csv:\\n\\na,b"), "{first}");
    assert_eq!(endpoint.request()["messages"][3]["content"], "Sure?");
}

#[test]
fn a_waiting_call_is_asked_about_when_its_conversation_continues() {
    let delete = call("c1", "tasks__delete_task", &json!({ "task_id": TASK }));
    let endpoint = Endpoint::new(vec![delete, text("It is gone.")]);
    let rig = rig(&endpoint);
    rig.run(&["chat", "--no-stream", &format!("Delete {TASK}")]).code(5);
    let mut session = Session::start(&rig, &["chat", "--no-stream", "--continue"]);
    session.expect("Onboarding of the new colleague");
    session.expect("allow tasks__delete_task?");
    session.type_in("y\r");
    session.expect("It is gone.");
    session.expect("> ");
    session.type_in(CTRL_D);
    assert_eq!(session.end().0, 0);
}

/// A policy under which another person decides.
const STRICT: &str = "allowed_tools = ['tasks__delete_task', 'tasks__list_tasks']\n\
    require_approval_for_tools = ['tasks__delete_task']\n[approvals]\nroles = ['approver']\n";
const APPROVE: [&str; 9] =
    ["--policy", "strict.toml", "approvals", "approve", "c1", "--as", "grace", "--role", "approver"];

fn delete() -> Value {
    call("c1", "tasks__delete_task", &json!({ "task_id": TASK }))
}

/// Makes the model call a tool that waits for another person, and waits until the prompt loop waits, too.
fn waits_for_another(rig: &Rig, words: &[&str]) -> Session {
    rig.write("strict.toml", STRICT);
    let mut session = Session::start(rig, &[&["--policy", "strict.toml", "chat", "--no-stream"], words].concat());
    session.expect("> ");
    session.type_in(&format!("Delete {TASK}\r"));
    session.expect("waits for another decider: any principal of example-org with the role approver, but not ada");
    session.expect("Onboarding of the new colleague");
    // The policy is not the application's own, so the printed command names it.
    session.expect("toolbox approvals approve c1 --as NAME --role approver --policy strict.toml");
    session.expect("waiting for the decision");
    session
}

#[test]
fn a_chat_greets_and_has_commands() {
    let endpoint = Endpoint::new(vec![text("Hi.")]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &["chat", "--no-stream"]);
    session.expect(&format!("toolbox {}: the model m at http://127.0.0.1:", env!("CARGO_PKG_VERSION")));
    session.expect("19 tools, the policy of toolbox");
    session.expect("/quit or Ctrl-D leaves");
    for (typed, expected) in [
        ("/hlep me", "there is no command /hlep, so nothing was sent"),
        ("/help", "\r\n   /help   shows this list\r\n   /tools  lists the tools that the model can call"),
        ("/tools", "tasks__list_tasks"),
        ("Hello", "Hi."),
    ] {
        session.expect("> ");
        session.type_in(&format!("{typed}\r"));
        session.expect(expected);
    }
    session.expect("> ");
    session.type_in("/quit\r");
    let (code, shown) = session.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("continue with: toolbox chat --conversation"), "{shown}");
    assert_eq!(endpoint.request()["messages"][1]["content"], "Hello");
}

#[test]
fn a_chat_stays_until_another_person_has_decided() {
    // The deciding process has no model, so this process sends the model request.
    let endpoint = Endpoint::new(vec![delete(), text("It is gone."), text("Bye.")]);
    let mut rig = Rig::new();
    rig.set("NO_COLOR", "1");
    let mut session = waits_for_another(&rig, &["--model-url", &endpoint.url, "--model", "m"]);
    session.type_in(CTRL_C);
    session.expect("> ");
    session.type_in("Hurry\r");
    session.expect("not sent, because a call waits");
    session.expect("> ");
    session.type_in("\r");
    session.expect("waiting for the decision");
    rig.run(&APPROVE).code(0);
    session.expect("<- ok tasks__delete_task");
    session.expect("It is gone.");
    session.expect("> ");
    session.type_in("Thanks\r");
    session.expect("Bye.");
    session.expect("> ");
    session.type_in(CTRL_D);
    let (code, shown) = session.end();
    assert_eq!(code, 0, "a call that was decided does not count: {shown}");
    let requests: Vec<_> = (0..3).map(|_| endpoint.request()).collect();
    assert!(!requests[2].to_string().contains("Hurry"));
    assert_eq!(requests[1]["messages"].as_array().unwrap().last().unwrap()["role"], "tool");
}

#[test]
fn what_the_deciding_process_heard_from_the_model_is_shown() {
    let endpoint = Endpoint::new(vec![delete(), text("It is gone."), text("Bye.")]);
    let rig = rig(&endpoint);
    let mut session = waits_for_another(&rig, &[]);
    assert!(rig.run(&[&APPROVE[..], &["--no-stream"]].concat()).code(0).stdout.contains("It is gone."));
    session.expect("<- ok tasks__delete_task");
    session.expect("It is gone.");
    session.expect("> ");
    session.type_in("Thanks\r");
    session.expect("Bye.");
    session.expect("> ");
    session.type_in("/quit\r");
    assert_eq!(session.end().0, 0);
}

#[test]
fn a_chat_over_a_shared_store_takes_the_decision_from_its_post() {
    let endpoint = Endpoint::new(vec![delete(), text("It is gone.")]);
    let mut rig = rig(&endpoint);
    rig.set("TOOLBOX_STORE", "sqlite:shared.db");
    let mut session = waits_for_another(&rig, &[]);
    rig.run(&APPROVE).code(0);
    session.expect("<- ok tasks__delete_task");
    session.expect("It is gone.");
    session.expect("> ");
    session.type_in("/quit\r");
    let (code, shown) = session.end();
    assert_eq!(code, 0, "{shown}");
    // Another terminal may not have the variable.
    assert!(shown.contains("--policy strict.toml --store sqlite:shared.db"), "{shown}");
}

#[test]
fn a_question_that_is_left_open_is_asked_again() {
    let endpoint = Endpoint::new(vec![delete(), text("It is gone.")]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &["chat", "--no-stream"]);
    session.expect("> ");
    session.type_in(&format!("Delete {TASK}\r"));
    session.expect("allow tasks__delete_task?");
    session.type_in(CTRL_C);
    session.expect("still waits for a decision");
    session.expect("> ");
    session.type_in("\r");
    session.expect("allow tasks__delete_task?");
    session.type_in("y\r");
    session.expect("It is gone.");
    session.expect("> ");
    session.type_in("/quit\r");
    assert_eq!(session.end().0, 0);
}

#[test]
fn a_chat_that_is_left_while_a_call_waits_says_so_by_its_exit() {
    let endpoint = Endpoint::new(vec![delete()]);
    let rig = rig(&endpoint);
    let mut session = waits_for_another(&rig, &[]);
    session.type_in(CTRL_C);
    session.expect("> ");
    session.type_in("/quit\r");
    let (code, shown) = session.end();
    assert_eq!((code, rig.waiting().len()), (5, 1), "{shown}");
}

#[test]
fn a_narrow_terminal_gets_every_column() {
    let rig = Rig::new();
    let arguments = json!({ "task_id": TASK }).to_string();
    rig.run(&["call", "tasks__delete_task", &arguments, "--user-text", TASK]).code(5);
    rig.run(&["call", "tasks__list_tasks"]).code(0);
    for (words, expected) in [
        (&["list"][..], &["NAME", "EFFECT", "EXECUTION", "DECISION", "HASH", "SOURCE", "mail__send_email"][..]),
        (&["approvals", "list"], &["WHAT", "Onboarding of the new colleague", "CONVERSATION"]),
        (&["audit", "show"], &["DECIDED BY", "CALL", "PRINCIPAL", "tasks__list_tasks", "ok", "ada"]),
    ] {
        let (_, shown) = Session::start(&rig, words).end();
        assert!(shown.lines().all(|line| line.trim_end().chars().count() <= 100 + 8), "{shown}");
        let plain = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in expected {
            assert!(plain.contains(part), "{part}: {shown}");
        }
    }
}

#[test]
fn a_terminal_gets_colours_and_columns() {
    let mut rig = Rig::new();
    let (_, shown) = Session::start(&rig, &["list"]).end();
    assert!(shown.contains("\u{1b}[1m"), "{shown}");
    let plain: String = shown.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    assert!(plain.lines().all(|line| line.trim_end().chars().count() <= 100), "{plain}");
    for (name, value) in [("TERM", "dumb"), ("CLICOLOR", "0"), ("NO_COLOR", "1")] {
        rig.set(name, value);
        let (_, shown) = Session::start(&rig, &["list"]).end();
        assert!(!shown.contains('\u{1b}'), "{name}: {shown}");
        rig.set(name, if name == "TERM" { "xterm" } else { "" });
    }
}

#[test]
fn a_silent_endpoint_is_waited_for_visibly_and_given_up() {
    let endpoint = Endpoint::new(vec![Value::Null]);
    let rig = rig(&endpoint);
    let mut session = Session::start(&rig, &SEND);
    session.expect("waiting, 3 s");
    session.type_in(CTRL_C);
    let (code, shown) = session.end();
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("cancelling the run"), "{shown}");
}
