//! Gemini over HTTP: the model in the URL, and signed turns that the next request contains unchanged.

use serde_json::{Value, json};
use tests::provider::Turn;
use tests::server::{Reply, Server};
use tests::world;
use tool_runtime::agent::http::HttpModel;
use tool_runtime::agent::{Agent, SavedConversation, TurnOutcome};
use tool_runtime::call::ClientAnswer;
use tool_runtime::wire::Format;
use tool_runtime::{RunOptions, ToolPolicy, ToolRunner};

use crate::http::ask;

const POLICY: &str = "allowed_tools = [\"rig__double\", \"rig__cursor\"]";

#[tokio::test]
async fn geminis_signatures_survive_a_restart() {
    let parts = json!([
        { "text": "I need both.", "thought": true },
        { "text": "One moment.", "thoughtSignature": "c2lnLTE=" },
        { "functionCall": { "name": "rig__double", "args": { "n": 1.0 } }, "thoughtSignature": "c2lnLTI=" },
        { "functionCall": { "id": "fc-2", "name": "rig__cursor", "args": { "file": "a.rs" } } },
    ]);
    let turn = |parts: &Value| {
        let candidate = json!({ "content": { "role": "model", "parts": parts }, "finishReason": "STOP" });
        let chunk = json!({ "candidates": [candidate], "modelVersion": "gemini-3-pro-preview-11-2025" });
        Reply::stream(&format!("data: {chunk}\r\n\r\n"))
    };
    let server = Server::start([turn(&parts), turn(&json!([{ "text": "Done." }]))]).unwrap();
    let agent =
        || Agent::new(HttpModel::builder(Format::Gemini, server.url(), "gemini-3-pro").retries(0).build().unwrap());
    let policy = || ToolPolicy::from_toml(POLICY).unwrap();
    let runner = ToolRunner::builder(world::tools().build().unwrap(), policy()).build().unwrap();
    let mut conversation = agent().converse(runner.run(RunOptions::new()));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
    drop((conversation, runner));

    let saved: SavedConversation = serde_json::from_str(&saved).unwrap();
    let runner = ToolRunner::builder(world::tools().build().unwrap(), policy()).build().unwrap();
    let mut conversation = agent().restore(&runner, RunOptions::new(), saved).await.unwrap();
    let id = conversation.waiting().map(|call| call.id.clone()).next().unwrap();
    let ended = conversation.answer([ClientAnswer::value(id, "7")]).await.unwrap();
    assert!(matches!(&ended, TurnOutcome::Answered { text } if text == "Done."), "{ended:?}");

    let asked = server.asked().remove(1).body;
    let body: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(body["contents"][1], json!({ "role": "model", "parts": parts }));
    // The digits of a number stay, too.
    assert!(asked.contains(r#""args":{"n":1.0}"#), "{asked}");
    let results: Vec<_> = body["contents"][2]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (part["functionResponse"]["name"].as_str().unwrap(), part["functionResponse"]["id"].as_str()))
        .collect();
    assert_eq!(results, [("rig__double", None), ("rig__cursor", Some("fc-2"))]);
}

#[tokio::test]
async fn the_model_is_named_in_the_url() {
    let vertex = "/v1/projects/p/locations/l/publishers/google";
    for (path, name, asked) in [
        ("", "gemini-3-pro", "/v1beta/models/gemini-3-pro"),
        ("", "models/gemini-3-pro", "/v1beta/models/gemini-3-pro"),
        ("", "tunedModels/mine", "/v1beta/tunedModels/mine"),
        (vertex, "gemini-3@001", &format!("{vertex}/models/gemini-3@001")),
    ] {
        for (stream, method) in [(true, "streamGenerateContent?alt=sse"), (false, "generateContent")] {
            let server = Server::start([Reply::stream(&Turn::text("Hi.").stream(Format::Gemini))]).unwrap();
            let model = HttpModel::builder(Format::Gemini, server.url() + path, name).stream(stream).build().unwrap();
            assert_eq!(ask(&model).await.unwrap().text, "Hi.");
            let head = server.asked().remove(0).head;
            assert!(head.starts_with(&format!("POST {asked}:{method} HTTP/1.1")), "{head}");
        }
    }
}
