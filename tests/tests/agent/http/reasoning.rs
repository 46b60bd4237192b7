//! The client requests encrypted reasoning where the provider stores no responses, and sends it back in the next
//! request.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const FORMAT: Format = Format::OpenAiResponses;

fn bodies(server: &Server) -> Vec<Value> {
    server.asked().iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect()
}

fn good() -> Reply {
    Reply::stream(&Turn::text("Hi.").stream(FORMAT))
}

fn refusal() -> Reply {
    let refusal = json!({ "error": {
        "message": "Encrypted content is not supported with this model.", "type": "invalid_request_error", "param": "include",
    }});
    Reply::body("400 Bad Request", "content-type: application/json\r\n", refusal.to_string().as_bytes())
}

#[tokio::test]
async fn encrypted_reasoning_is_asked_for_unless_the_model_has_none() {
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

/// The request without encrypted reasoning does not get the retries of the refused one again.
#[tokio::test]
async fn a_refused_request_and_the_next_form_share_their_retries() {
    let busy = || Reply::body("503 Service Unavailable", "retry-after: 0\r\n", b"");
    for (retries, status) in [(1, Some(503)), (2, None)] {
        let server = Server::start([busy(), refusal(), busy(), good()]).unwrap();
        let answer = ask(&client(FORMAT, &server).retries(retries).build().unwrap()).await;
        assert_eq!(answer.err().and_then(|error| error.status()), status, "{retries} retries");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_and_the_next_form_share_their_deadline() {
    // The clock moves only by `advance`, because a blocking task runs.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let blocking = tokio::task::spawn_blocking(move || ended.recv());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let model = HttpModel::builder(FORMAT, url, "m").retries(0);
    let model = model.timeout(NEVER).first_byte_timeout(NEVER).idle_timeout(NEVER).build().unwrap();
    let serve = async {
        for reply in [refusal(), good()] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"}") {
                assert!(stream.read_buf(&mut asked).await.unwrap() > 0);
            }
            // Two thirds of the limit for each of the two answers.
            tokio::time::advance(NEVER * 2 / 3).await;
            for _ in 0..9 {
                tokio::task::yield_now().await;
            }
            // The client of the second answer has hung up.
            let _ = stream.write_all(reply.bytes()).await;
        }
    };
    let (answer, ()) = tokio::join!(ask(&model), serve);
    assert_eq!(kind(answer), Err("model_timeout"));
    end.send(()).unwrap();
    blocking.await.unwrap().unwrap();
}
