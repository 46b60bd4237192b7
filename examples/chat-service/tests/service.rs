//! Tests the service without a network: requests go directly to the router.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use chat_service::demo::DemoModel;
use chat_service::people::people;
use chat_service::warehouse::Warehouse;
use chat_service::{Service, router};
use serde_json::{Value, json};
use tool_runtime::store::MemoryStore;
use tower::ServiceExt;

struct Rig {
    routes: Router,
    warehouse: Arc<Warehouse>,
}

impl Rig {
    fn new() -> Self {
        let warehouse = Arc::new(Warehouse::default());
        let people = people("a=ada,b=bob").unwrap();
        let service =
            Service::new(Arc::new(DemoModel), Arc::clone(&warehouse), people, Arc::new(MemoryStore::new())).unwrap();
        Self { routes: router(Arc::new(service)), warehouse }
    }

    async fn post(&self, token: &str, body: &Value) -> (StatusCode, String) {
        self.send("/api/chat", token, body).await
    }

    async fn send(&self, path: &str, token: &str, body: &Value) -> (StatusCode, String) {
        let request = Request::post(path).header("authorization", format!("Bearer {token}"));
        let request = request.body(Body::from(body.to_string())).unwrap();
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, text(response).await)
    }

    async fn get(&self, path: &str, token: &str) -> Response {
        let request = Request::get(path).header("authorization", format!("Bearer {token}"));
        self.routes.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    /// Returns the state of the chat `c`, as the page gets it.
    async fn state(&self, token: &str) -> Value {
        let response = self.get("/api/chats/c", token).await;
        assert_eq!(response.status(), StatusCode::OK);
        serde_json::from_str(&text(response).await).unwrap()
    }
}

impl Rig {
    /// Returns the ids and the code of a refused run.
    async fn refused(&self, token: &str, body: &Value) -> [String; 3] {
        let (status, stream) = self.send("/api/ag-ui", token, body).await;
        assert_eq!((status, types(&stream).join(" ").as_str()), (StatusCode::OK, "RUN_STARTED RUN_ERROR"), "{stream}");
        let frames = frames(&stream);
        [&frames[0]["threadId"], &frames[0]["runId"], &frames[1]["code"]].map(|text| text.as_str().unwrap().to_owned())
    }
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap()
}

fn says(text: &str) -> Value {
    json!({ "id": "c", "messages": [{ "id": "m1", "role": "user", "parts": [{ "type": "text", "text": text }] }] })
}

fn decides(question: &str, approved: bool) -> Value {
    // The text of a question ends with the id of its call.
    let call = question.split_once('.').unwrap().1;
    let part = json!({
        "type": "tool-stock__order", "toolCallId": call, "state": "approval-responded",
        "approval": { "id": question, "approved": approved },
    });
    json!({ "id": "c", "messages": [{ "id": "m2", "role": "assistant", "parts": [part] }] })
}

/// The frames of a stream, without the closing mark.
fn frames(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn types(stream: &str) -> Vec<String> {
    frames(stream).iter().map(|frame| frame["type"].as_str().unwrap().to_owned()).collect()
}

/// The question for a person in the stream.
fn asked(stream: &str) -> String {
    let frames = frames(stream);
    let request = frames.iter().find(|frame| frame["type"] == "tool-approval-request").unwrap();
    assert!(request["approvalId"].as_str().unwrap().ends_with(request["toolCallId"].as_str().unwrap()));
    request["approvalId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_order_waits_for_a_later_request() {
    let rig = Rig::new();
    let (status, first) = rig.post("a", &says("order 3 hinge")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(rig.warehouse.placed(), 0);
    let call = asked(&first);

    let (status, second) = rig.post("a", &decides(&call, true)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(rig.warehouse.placed(), 1);
    // The message that the client shows continues, and the call in it is not started again.
    assert_eq!(frames(&second)[0]["messageId"], frames(&first)[0]["messageId"]);
    assert!(!types(&second).contains(&"tool-input-start".to_owned()), "{second}");
    assert!(types(&second).contains(&"tool-output-available".to_owned()), "{second}");

    let (status, _) = rig.post("a", &decides(&call, true)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(rig.warehouse.placed(), 1);
}

#[tokio::test]
async fn a_refused_order_is_not_placed() {
    let rig = Rig::new();
    let (_, first) = rig.post("a", &says("order 3 hinge")).await;
    let (_, second) = rig.post("a", &decides(&asked(&first), false)).await;
    assert!(types(&second).contains(&"tool-output-denied".to_owned()), "{second}");
    assert_eq!(rig.warehouse.placed(), 0);
}

#[tokio::test]
async fn a_chat_belongs_to_its_principal() {
    let rig = Rig::new();
    let (_, first) = rig.post("a", &says("order 3 hinge")).await;
    let call = asked(&first);
    assert_eq!(rig.post("b", &decides(&call, true)).await.0, StatusCode::CONFLICT);
    assert_eq!(rig.post("nobody", &decides(&call, true)).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(rig.warehouse.placed(), 0);
    // The same id names another chat for bob.
    assert_eq!(rig.post("b", &says("hello")).await.0, StatusCode::OK);
    assert_eq!(rig.post("a", &decides(&call, true)).await.0, StatusCode::OK);
    assert_eq!(rig.warehouse.placed(), 1);
}

/// The page can run only its own script, and its buttons use the routes of the chat.
#[tokio::test]
async fn the_page_is_plain_and_strict() {
    let rig = Rig::new();
    let page = rig.get("/", "").await;
    assert_eq!(page.status(), StatusCode::OK);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    let html = text(page).await;
    // The page itself contains no script, style or handler.
    assert!(!html.contains(" on") && !html.contains("style=") && !html.contains("javascript:"), "{html}");
    assert_eq!((html.matches("<script").count(), html.matches("<style").count()), (1, 0));
    let script = text(rig.get("/page.js", "").await).await;
    for unsafe_sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
        assert!(!script.contains(unsafe_sink), "{unsafe_sink}");
    }
    for (path, content_type) in
        [("/page.js", "text/javascript; charset=utf-8"), ("/page.css", "text/css; charset=utf-8")]
    {
        assert!(html.contains(&format!("\"{path}\"")), "{path}");
        let file = rig.get(path, "").await;
        assert_eq!((file.status(), file.headers()["content-type"].to_str().unwrap()), (StatusCode::OK, content_type));
        assert_eq!(file.headers()["x-content-type-options"], "nosniff");
    }
    for path in ["\"/api/chat\"", "`/api/chats/${"] {
        assert!(script.contains(path), "{path}");
    }
}

/// The page shows a waiting call, and later its end.
#[tokio::test]
async fn the_page_shows_who_decides_on_what() {
    let rig = Rig::new();
    assert_eq!(rig.get("/api/chats/c", "nobody").await.status(), StatusCode::UNAUTHORIZED);
    let state = rig.state("a").await;
    assert_eq!(
        (&state["principal"], &state["tenant"], &state["messages"]),
        (&json!("ada"), &json!("acme"), &json!([]))
    );
    let (_, stream) = rig.post("a", &says("order 3 hinge to 5 Secret Street")).await;
    let question = asked(&stream);
    let state = rig.state("a").await;
    let waits = &state["waiting"][0];
    assert_eq!(waits["question"], question.as_str());
    assert_eq!(
        (&waits["mayDecide"], &waits["decided"], &waits["isClient"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert_eq!(waits["sentence"], "Orders 3 of the part “P-20”");
    let arguments = &waits["arguments"];
    assert_eq!((&arguments["part_id"], &arguments["count"]), (&json!("P-20"), &json!(3)));
    assert!(arguments["ship_to"].is_string() && !waits.to_string().contains("Secret Street"), "{state}");
    // Another person's chat of the same id is another chat.
    assert_eq!(rig.state("b").await["waiting"], json!([]));

    let mut body = decides(&question, false);
    body["messages"][0]["parts"][0]["approval"]["reason"] = json!("too expensive");
    assert_eq!(rig.post("a", &body).await.0, StatusCode::OK);
    let state = rig.state("a").await;
    assert_eq!((&state["waiting"], &state["running"]), (&json!([]), &json!(false)));
    let last = state["messages"].as_array().unwrap().last().unwrap();
    assert!(last["role"] == "assistant" && last["text"].as_str().unwrap().contains("too expensive"), "{state}");
    assert_eq!(rig.warehouse.placed(), 0);

    // A tool that the browser executes.
    rig.post("a", &says("where am I")).await;
    let waits = rig.state("a").await["waiting"][0].clone();
    assert_eq!((&waits["isClient"], &waits["mayDecide"]), (&json!(true), &json!(false)));
    assert_eq!(waits["payload"]["question"], "To find the nearest store.");
}

#[tokio::test]
async fn two_tabs_do_not_overwrite_each_other() {
    let rig = Rig::new();
    rig.post("a", &says("hello")).await;
    // Both are sent at once: the second gets 409, or its turn comes after the first.
    let (one, two) = (says("one"), says("two"));
    let both = tokio::join!(rig.post("a", &one), rig.post("a", &two));
    let mut taken = vec!["hello"];
    for (name, (status, text)) in [("one", both.0), ("two", both.1)] {
        match status {
            StatusCode::OK => taken.push(name),
            status => assert!(status == StatusCode::CONFLICT && text.contains("busy"), "{status}: {text}"),
        }
    }
    let state = rig.state("a").await;
    let of_user = state["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let mut kept: Vec<_> = of_user.map(|message| message["text"].as_str().unwrap()).collect();
    kept.sort_by_key(|text| ["hello", "one", "two"].iter().position(|known| known == text));
    assert_eq!(kept, taken);
    assert!(taken.len() > 1, "one of them has the chat");
    // A tab with an old state decides too late.
    let (_, stream) = rig.post("a", &says("order 3 hinge")).await;
    let question = asked(&stream);
    let (approve, deny) = (decides(&question, true), decides(&question, false));
    let both = tokio::join!(rig.post("a", &approve), rig.post("a", &deny));
    let taken = [both.0.0, both.1.0].into_iter().filter(|status| *status == StatusCode::OK).count();
    assert_eq!(taken, 1, "{both:?}");
    assert!(rig.warehouse.placed() <= 1);
}

#[tokio::test]
async fn no_price_leaves_the_warehouse() {
    let rig = Rig::new();
    let (_, stream) = rig.post("a", &says("find hinge")).await;
    assert!(stream.contains("in_stock"), "{stream}");
    assert!(!stream.contains("purchase_price") && !stream.contains("250"), "{stream}");
}

#[tokio::test]
async fn malformed_bodies_get_no_stream() {
    let rig = Rig::new();
    for body in [json!(7), json!({}), json!({ "id": "c", "messages": [] })] {
        let (status, text) = rig.post("a", &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {text}");
    }
    assert_eq!(rig.post("a", &says(" ")).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn an_ag_ui_run_that_asks_is_resumed() {
    let rig = Rig::new();
    let user = json!([{ "id": "m1", "role": "user", "content": "order 3 hinge" }]);
    let run = |run: &str, resume: Value| json!({ "threadId": "t", "runId": run, "messages": user, "resume": resume });
    let (status, first) = rig.send("/api/ag-ui", "a", &run("r1", json!([]))).await;
    assert_eq!(status, StatusCode::OK);
    let end = frames(&first).pop().unwrap();
    assert_eq!((&end["type"], &end["runId"]), (&json!("RUN_FINISHED"), &json!("r1")));
    let interrupt = end["outcome"]["interrupts"][0]["id"].clone();
    assert_eq!(rig.refused("a", &run("r2", json!([]))).await, ["t", "r2", "chat_interrupts"]);

    let resume = json!([{ "interruptId": interrupt, "status": "resolved", "payload": { "approved": true } }]);
    let mut body = run("r2", resume);
    body["messages"] = json!([]);
    assert_eq!(rig.refused("b", &body).await, ["t", "r2", "history_forged"]);
    let (status, second) = rig.send("/api/ag-ui", "a", &body).await;
    assert_eq!((status, rig.warehouse.placed()), (StatusCode::OK, 1));
    let types = types(&second);
    assert_eq!(types[..2], ["RUN_STARTED", "TOOL_CALL_RESULT"]);
    assert!(!types.contains(&"TOOL_CALL_START".to_owned()));
    assert_eq!(rig.refused("a", &body).await, ["t", "r2", "not_pending"]);
    assert_eq!(rig.warehouse.placed(), 1);
}

#[tokio::test]
async fn a_request_that_is_no_run_of_a_known_client_gets_a_status() {
    let rig = Rig::new();
    let run = json!({ "threadId": "t", "runId": "r", "messages": [] });
    assert_eq!(rig.send("/api/ag-ui", "nobody", &run).await.0, StatusCode::UNAUTHORIZED);
    for body in [json!(7), json!({}), json!({ "threadId": "", "runId": "r" })] {
        assert_eq!(rig.send("/api/ag-ui", "a", &body).await.0, StatusCode::BAD_REQUEST, "{body}");
    }
}

/// A container is stopped by SIGTERM.
#[cfg(unix)]
#[test]
fn a_service_that_is_told_to_end_ends() {
    let mut service = Command::new(env!("CARGO_BIN_EXE_chat-service"));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("chats.db").display());
    let service = service.env("CHAT_LISTEN", "127.0.0.1:0").env("CHAT_STORE", store);
    let mut service = service.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(service.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap();
    // Once it answers, its signal handlers are installed, too.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /nowhere HTTP/1.1\r\nhost: service\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 404"), "{response}");
    assert!(Command::new("kill").args(["-TERM", &service.id().to_string()]).status().unwrap().success());
    assert_eq!(service.wait().unwrap().code(), Some(0));
}
