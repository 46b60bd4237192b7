//! The message of an endpoint about a failure: the client removes the secrets of the request, and passes on the wait
//! that the endpoint requests.

use serde_json::json;
use tool_runtime::agent::Agent;

use super::*;

const KEY: &str = "sk-canary-\"key\"-123";
const HEADER: &str = "azure-canary-456";
const TOKEN: &str = "token-canary-789";
const QUERY: &str = "query-canary-012";

/// A sentence that repeats every secret of the request.
fn words() -> String {
    format!("bad key {KEY}, bad header {HEADER}, bad token {TOKEN}, bad url {QUERY}")
}

/// An answer that fails within the body: as the error of a whole body, and as an event of a stream.
fn failing(format: Format) -> [Reply; 2] {
    let error = json!({"message": words(), "code": words(), "type": "invalid_request_error"});
    let whole = match format {
        Format::Ollama => json!({"error": words()}),
        Format::Anthropic => json!({"type": "error", "error": error}),
        _ => json!({"error": error}),
    };
    let event = match format {
        Format::OpenAiResponses => json!({"type": "response.failed", "response": {"status": "failed", "error": error}}),
        _ => whole.clone(),
    };
    let stream = match format {
        Format::Ollama => format!("{event}\n"),
        Format::Anthropic => format!("event: error\ndata: {event}\n\n"),
        _ => format!("data: {event}\n\n"),
    };
    let headers = "content-type: application/json\r\n";
    [Reply::body("200 OK", headers, whole.to_string().as_bytes()), Reply::stream(&stream)]
}

#[tokio::test]
async fn no_error_repeats_a_secret_of_its_request() {
    for &format in Format::ALL {
        let refused = |status: &str, body: &str| Reply::body(status, "", body.as_bytes());
        let json = json!({"error": {"message": words(), "code": words()}}).to_string();
        let long = format!("{}{}", "x".repeat((16 << 10) - 14), words());
        let replies = [refused("401 No", &words()), refused("500 No", &json), refused("403 No", &long)];
        for reply in replies.into_iter().chain(failing(format)) {
            let server = Server::start([reply]).unwrap();
            let model = HttpModel::builder(format, format!("{}/v1?key={QUERY}", server.url()), "m")
                .key(KEY)
                .header("api-key", HEADER)
                .header("x-gateway", format!("Bearer {TOKEN}"))
                .retries(0)
                .build()
                .unwrap();
            let runner = ToolRunner::builder(ToolCatalog::builder().build().unwrap(), ToolPolicy::deny_all());
            let mut conversation = Agent::new(model.clone()).converse(runner.build().unwrap().run(RunOptions::new()));
            let ended = conversation.send("Hello?").await;
            let TurnOutcome::Stopped { reason, .. } = &ended else { panic!("{format}: {ended:?}") };
            let saved = serde_json::to_string(&conversation.save().await.unwrap()).unwrap();
            let model = match reason {
                tool_runtime::agent::StopReason::Model(error) => error.detail().to_owned(),
                other => format!("{other:?}"),
            };
            let seen = format!("{ended:?} {reason} {model} {saved}");
            assert!(!seen.contains("canary") && !seen.contains("sk-"), "{format}: {seen}");
            assert!(model.contains("bad key [key]") || model.contains("xxx"), "{format}: the rest is kept: {model}");
        }
    }
}

#[tokio::test]
async fn an_error_is_its_message_and_the_wait_that_it_asks_for() {
    let server = Server::start([Reply::body(
        "429 Slow down",
        "retry-after: 3600\r\n",
        br#"{"error":{"message":"Too many tokens today.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    )])
    .unwrap();
    let error = ask(&client(Format::OpenAiChat, &server).retries(2).build().unwrap()).await.unwrap_err();
    assert_eq!(error.wait(), Some(Duration::from_hours(1)));
    assert!(error.to_string().ends_with("; it asks to wait 3600 seconds"), "{error}");
    assert_eq!(error.detail(), "Too many tokens today. (rate_limit_exceeded)");
    for (body, detail) in [
        (r#"{"error":"no model"}"#, "no model"),
        (r#"[{"error":{"code":400,"message":"Bad."}}]"#, "Bad. (400)"),
        (r#"{"detail":[]}"#, r#"{"detail":[]}"#),
        ("plain", "plain"),
        ("{", "{"),
    ] {
        let server = Server::start([Reply::body("400 No", "", body.as_bytes())]).unwrap();
        let error = ask(&client(Format::Gemini, &server).build().unwrap()).await.unwrap_err();
        assert_eq!((error.detail(), error.wait()), (detail, None));
    }
}

#[tokio::test]
async fn a_base_url_with_the_operation_is_refused_with_a_hint() {
    for (format, path, hint) in [
        (Format::OpenAiChat, "/v1/chat/completions", "leave `/chat/completions` out"),
        (Format::OpenAiChat, "/gateway/v1/chat/completions/", "leave `/chat/completions` out"),
        (Format::OpenAiResponses, "/v1/responses", "leave `/responses` out"),
        (Format::Anthropic, "/v1/messages", "leave `/messages` out"),
        (Format::Ollama, "/api/chat", "leave `/chat` out"),
        (Format::Gemini, "/v1beta/models/m:generateContent", "ends with the operation"),
    ] {
        let error = HttpModel::builder(format, format!("http://127.0.0.1:1{path}"), "m").build().unwrap_err();
        assert!(error.detail().contains(hint), "{}", error.detail());
    }
    for path in ["/v1", "/chat", "/messages", "/v1/chat"] {
        for &format in Format::ALL {
            assert!(HttpModel::builder(format, format!("http://127.0.0.1:1{path}"), "m").build().is_ok());
        }
    }
}
