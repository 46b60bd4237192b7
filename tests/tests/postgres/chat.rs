//! The chat service over PostgreSQL: two processes and an operator share its chats.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use chat_service::demo::DemoModel;
use chat_service::people::people;
use chat_service::warehouse::Warehouse;
use chat_service::{Service, router, store};
use serde_json::{Value, json};
use tests::postgres::Postgres;
use tool_runtime::agent::Worker;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::RecordFilter;
use tower::ServiceExt as _;

/// A process of the service.
struct Process {
    routes: Router,
    worker: Option<Worker>,
}

impl Process {
    async fn start(url: &str, warehouse: &Arc<Warehouse>) -> Self {
        let people: HashMap<_, _> = people("a=ada").unwrap();
        let store = store::open(url).await.unwrap();
        let service = Service::new(Arc::new(DemoModel), Arc::clone(warehouse), people, store).unwrap();
        let worker = Some(service.worker());
        Self { routes: router(Arc::new(service)), worker }
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, String::from_utf8(to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap())
    }

    async fn say(&self, text: &str) -> (StatusCode, String) {
        let part = json!({ "type": "text", "text": text });
        let body = json!({ "id": "c", "messages": [{ "id": "m1", "role": "user", "parts": [part] }] });
        let request = Request::post("/api/chat").header("authorization", "Bearer a");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn state(&self) -> Value {
        let request = Request::get("/api/chats/c").header("authorization", "Bearer a");
        let (status, body) = self.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_the_chat_service_share_a_server() {
    let server = Postgres::start();
    let url = server.url("chats");
    let warehouse = Arc::new(Warehouse::default());
    let first = Process::start(&url, &warehouse).await;
    let (status, stream) = first.say("order 3 hinge").await;
    assert_eq!(status, StatusCode::OK, "{stream}");
    drop(first);

    // An operator decides from another process, and a second process of the service carries the decision out.
    let shared = store::open(&url).await.unwrap();
    let call = tests::pending_calls(&*shared, &RecordFilter::default()).await.pop().unwrap();
    let grace = Decider::new("grace").tenant("acme");
    let queue = tests::queue(shared);
    let posted = queue.decide(&call.run_id, &call.question(), ApprovalDecision::Approve, &grace).await.unwrap();
    assert!(posted.is_none() && warehouse.placed() == 0);
    let mut second = Process::start(&url, &warehouse).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = second.worker.take().unwrap();
    let worker = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let state = loop {
        let state = second.state().await;
        if state["running"] == false && state["waiting"] == json!([]) {
            break state;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(state["messages"].to_string().contains("About the order: 1001"), "{state}");
    assert_eq!(warehouse.placed(), 1);
    drop(stop);
    worker.await.unwrap().unwrap();
    let (status, stream) = second.say("hello").await;
    assert!(status == StatusCode::OK && stream.contains("said"), "{stream}");
}
