//! The client requests encrypted reasoning where the provider stores no responses, and sends it back in the next
//! request.

use serde_json::{Value, json};

use super::*;

const FORMAT: Format = Format::OpenAiResponses;

fn bodies(server: &Server) -> Vec<Value> {
    server.asked().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

fn good() -> Reply {
    Reply::stream(&Turn::text("Hi.").stream(FORMAT))
}

#[tokio::test]
async fn encrypted_reasoning_is_asked_for_unless_the_model_has_none() {
    let refusal = json!({ "error": {
        "message": "Encrypted content is not supported with this model.", "type": "invalid_request_error", "param": "include",
    }});
    let refusal =
        || Reply::body("400 Bad Request", "content-type: application/json\r\n", refusal.to_string().as_bytes());
    let server = Server::start([good(), refusal(), good(), good()]).unwrap();
    let with_sources = json!(["web_search_call.action.sources"]);
    let model = client(FORMAT, &server).build().unwrap();
    let settings = RequestSettings::new().extra("include", with_sources.clone());
    for _ in 0..3 {
        assert!(ask_with(&model, &settings).await.unwrap().ended_well());
    }
    let sent = bodies(&server);
    let both = json!(["web_search_call.action.sources", "reasoning.encrypted_content"]);
    let includes: Vec<_> = sent.iter().map(|body| body["include"].clone()).collect();
    assert_eq!(includes, [both.clone(), both, with_sources.clone(), with_sources]);
    assert!(sent.iter().all(|body| body["store"] == false));
}

#[tokio::test]
async fn another_refusal_is_not_asked_again() {
    let refusal = Reply::body("400 Bad Request", "", br#"{"error":{"message":"`input` is too long"}}"#);
    let server = Server::start([refusal, good()]).unwrap();
    let model = client(FORMAT, &server).build().unwrap();
    assert_eq!(kind(ask(&model).await), Ok(400));
    assert!(ask(&model).await.unwrap().ended_well());
    let sent = bodies(&server);
    assert!(sent.iter().all(|body| body["include"] == json!(["reasoning.encrypted_content"])), "{sent:?}");
}
