//! The HTTP clients against servers on loopback: recorded responses, broken ones, hostile ones.

mod connection;
mod gemini;
mod intervened;
mod media;
mod metered;
mod prefix;
mod reasoning;
mod replayed;
mod runaway;
mod secrets;
mod typed;

use std::io::Write as _;
use std::time::Duration;

use serde_json::Value;
use tests::provider::Turn;
use tests::server::{Reply, Server};
use tests::wire::{fixtures, read_json, same};
use tests::{six_turns, wire};
use tool_runtime::agent::http::{HttpModel, HttpModelBuilder};
use tool_runtime::agent::{Agent, ModelClient, ModelError, TurnOutcome};
use tool_runtime::wire::{Decoded, FinishReason, Format, Message, ReasoningEffort, RequestSettings, ToolChoice};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

/// The limit of a server that answers, however busy the machine is.
const NEVER: Duration = Duration::from_hours(1);

fn client(format: Format, server: &Server) -> HttpModelBuilder {
    let model = HttpModel::builder(format, server.url(), "m").retries(0);
    model.timeout(NEVER).first_byte_timeout(NEVER).idle_timeout(NEVER)
}

async fn ask(model: &HttpModel) -> Result<Decoded, ModelError> {
    ask_with(model, &RequestSettings::new()).await
}

async fn ask_with(model: &HttpModel, settings: &RequestSettings) -> Result<Decoded, ModelError> {
    let catalog = ToolCatalog::builder().build().unwrap();
    let run = ToolRunner::builder(catalog, ToolPolicy::deny_all()).build().unwrap().run(RunOptions::new());
    let messages = [Message::user("Hello?")];
    model.complete(tool_runtime::agent::ModelRequest::new(&messages, run.catalog(), settings), &mut |_| {}).await
}

async fn answer(format: Format, reply: Reply) -> Result<Decoded, ModelError> {
    let server = Server::start([reply]).unwrap();
    ask(&client(format, &server).build().unwrap()).await
}

/// The status with which the provider refused, or the code.
fn kind(result: Result<Decoded, ModelError>) -> Result<u16, &'static str> {
    kind_of(&result.expect_err("an error"))
}

fn kind_of(error: &ModelError) -> Result<u16, &'static str> {
    error.status().ok_or_else(|| error.code())
}

fn good() -> Turn {
    Turn { text: "Hm.".to_owned(), ..Turn::calls([("c1", "rig__double", r#"{"n":1}"#), ("c2", "rig__fail", "{}")]) }
}

#[tokio::test]
async fn six_turns_run_in_every_format() {
    for &format in Format::ALL {
        for strict in [false, true] {
            let six = six_turns::hold(format, strict).await.unwrap();
            assert!(matches!(&six.ended, TurnOutcome::Answered { text } if text.contains("line 7")), "{:?}", six.ended);
            let results: Vec<_> = six
                .conversation
                .history()
                .into_iter()
                .filter_map(|message| match message {
                    Message::Result(result) => Some((result.content, result.is_error)),
                    _ => None,
                })
                .collect();
            let contents: Vec<_> = results.iter().map(|(content, _)| content.as_str()).collect();
            assert_eq!((contents[0], contents[1], contents[7], contents[8]), ("2", "4", "7", "1000"), "{format}");
            for (at, code) in [
                (2, "execution_error"),
                (3, "unavailable"),
                (4, "unavailable"),
                (5, "invalid"),
                (6, "validation_error"),
            ] {
                assert!(results[at].1 && contents[at].contains(code), "{format} {at}: {}", contents[at]);
            }
            assert_eq!(six.asked.len(), 6);
            for asked in &six.asked {
                let body: Value = serde_json::from_str(&asked.body).expect("JSON");
                if format == Format::Gemini {
                    let target = "POST /v1beta/models/m:streamGenerateContent?alt=sse ";
                    assert!(asked.head.starts_with(target), "{}", asked.head);
                } else {
                    assert_eq!((&body["model"], &body["stream"]), (&Value::from("m"), &Value::from(true)));
                }
                assert!(!asked.body.contains("Is not allowed."), "what is denied is not offered");
                let key = match format {
                    Format::Anthropic => "x-api-key: a key",
                    Format::Gemini => "x-goog-api-key: a key",
                    _ => "authorization: bearer a key",
                };
                assert!(asked.head.to_ascii_lowercase().contains(key), "{}", asked.head);
            }
            assert_eq!(six.conversation.turns()[0].usage.map(|usage| usage.input_tokens), Some(9), "{format}");
        }
    }
}

#[tokio::test]
async fn recorded_responses_read_the_same_over_http() {
    let index = read_json(&fixtures("transcripts").join("index.json"));
    let mut seen = 0;
    for case in index.as_array().unwrap() {
        let format = match case["api"].as_str().unwrap() {
            "chat" => Format::OpenAiChat,
            "messages" => Format::Anthropic,
            "responses" => Format::OpenAiResponses,
            other => panic!("{other}"),
        };
        let bytes = std::fs::read(fixtures("transcripts").join(case["response"].as_str().unwrap())).unwrap();
        let (_, body) = wire::recorded(&bytes);
        let over_http = answer(format, Reply::recorded(bytes.clone()).in_pieces(1000, Duration::ZERO)).await;
        if case["status"] == 200 {
            let (got, expected) = (over_http.unwrap(), wire::decode(format, &body, usize::MAX));
            assert!(same(&wire::result(&got), &wire::result(&expected)), "{}", case["id"]);
        } else {
            let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
            assert_eq!(kind(over_http), Ok(status), "{}", case["id"]);
        }
        seen += 1;
    }
    assert!(seen > 100);
}

#[tokio::test]
async fn a_cut_at_every_byte_runs_nothing() {
    for &format in Format::ALL {
        let reply = Reply::stream(&good().stream(format));
        let length = reply.len();
        let server = Server::start((0..=length).map(|cut| reply.clone().cut_at(cut))).unwrap();
        let model = client(format, &server).build().unwrap();
        let whole = wire::result(&answer(format, reply.clone()).await.unwrap());
        let mut runnable = 0;
        for cut in 0..=length {
            match ask(&model).await {
                Err(error) => {
                    assert!(
                        matches!(error.code(), "model_unreachable" | "model_protocol"),
                        "{format} {cut}: {error:?}"
                    );
                }
                Ok(decoded) if decoded.calls.iter().any(tool_runtime::wire::DecodedCall::is_executable) => {
                    // If a call may run, all calls are complete.
                    assert!(same(&wire::result(&decoded)["calls"], &whole["calls"]), "{format} {cut}");
                    runnable += 1;
                }
                Ok(decoded) => assert!(!decoded.ended_well() || decoded.calls.is_empty(), "{format} {cut}"),
            }
        }
        assert!(runnable > 0, "{format}");
    }
}

#[tokio::test]
async fn answers_that_are_none_are_typed_errors() {
    for &format in Format::ALL {
        let html = "content-type: text/html; charset=utf-8\r\n";
        let cases = [
            (Reply::body("401 Unauthorized", "", b"{\"error\":\"no\"}"), Ok(401)),
            (Reply::body("404 Not Found", html, b"<html>"), Ok(404)),
            (Reply::body("500 Internal Server Error", "", b""), Ok(500)),
            (Reply::body("302 Found", "location: http://127.0.0.1:1/\r\n", b""), Err("model_redirect")),
            (Reply::body("307 Temporary Redirect", "location: /elsewhere\r\n", b""), Err("model_redirect")),
            (Reply::body("200 OK", html, b"<html><body>Sign in</body></html>"), Err("model_protocol")),
            (Reply::body("200 OK", "content-type: application/json\r\n", b""), Err("model_protocol")),
            (Reply::body("204 No Content", "", b""), Err("model_protocol")),
            (Reply::recorded(&b"garbage\r\n\r\n"[..]), Err("model_unreachable")),
            (Reply::recorded(&b""[..]), Err("model_unreachable")),
        ];
        for (at, (reply, expected)) in cases.into_iter().enumerate() {
            assert_eq!(kind(answer(format, reply).await), expected, "{format} {at}");
        }
        for body in ["<html>Sign in</html>", "data: {\"error\":{\"message\":\"no\"}}\n\n", "{\"error\":\"no\"}", "null"]
        {
            let decoded = answer(format, Reply::body("200 OK", "", body.as_bytes())).await.unwrap();
            assert!(!decoded.ended_well() && decoded.calls.is_empty(), "{format} {body}: {decoded:?}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_endpoint_is_a_typed_error() {
    let url = Server::start([]).unwrap().url();
    let model = HttpModel::builder(Format::OpenAiChat, url, "m").retries(1).build().unwrap();
    let error = ask(&model).await.expect_err("nobody listens");
    assert_eq!(kind_of(&error), Err("model_unreachable"));
    assert!(!error.to_string().contains("127.0.0.1"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn gzip_is_read_within_the_limit() {
    for &format in Format::ALL {
        let plain = good().stream(format);
        let headers = "content-encoding: gzip\r\ncontent-type: text/event-stream\r\n";
        let decoded = answer(format, Reply::body("200 OK", headers, &gzip(plain.as_bytes()))).await.unwrap();
        assert_eq!(decoded.calls.len(), 2, "{format}");
        // A gzip file may have several members, one after the other.
        let (first, second) = plain.as_bytes().split_at(plain.len() / 2);
        let members = [gzip(first), gzip(second)].concat();
        let decoded = answer(format, Reply::body("200 OK", headers, &members)).await.unwrap();
        assert_eq!(decoded.calls.len(), 2, "{format}");
        let broken = Reply::body("200 OK", headers, b"\x1f\x8b\x08 this is not gzip");
        assert!(answer(format, broken).await.is_err(), "{format}");
        let other = Reply::body("200 OK", "content-encoding: br\r\n", b"?");
        assert_eq!(kind(answer(format, other).await), Err("model_protocol"), "{format}");
        // 64 MiB of comments in 64 KiB.
        let bomb = gzip(&vec![b':'; 64 << 20]);
        let server = Server::start([Reply::body("200 OK", headers, &bomb)]).unwrap();
        let model = client(format, &server).max_response_bytes(1 << 20).build().unwrap();
        let decoded = ask(&model).await.unwrap();
        assert_eq!(decoded.error.unwrap().code(), "limit_exceeded", "{format}");
    }
}

#[tokio::test]
async fn a_stream_without_end_ends() {
    for &format in Format::ALL {
        let server = Server::start([Reply::forever(&": nothing\n\n".repeat(1000))]).unwrap();
        let model = client(format, &server).max_response_bytes(1 << 20).build().unwrap();
        let decoded = ask(&model).await.unwrap();
        assert!(!decoded.ended_well(), "{format}: {decoded:?}");
    }
    // One frame of 16 MB: twice the maximum of a frame.
    let frame = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(16 << 20));
    let decoded = answer(Format::OpenAiChat, Reply::stream(&frame)).await.unwrap();
    assert_eq!(decoded.error.unwrap().code(), "limit_exceeded");
}

#[tokio::test]
async fn hostile_calls_stay_apart() {
    let turn = Turn::calls([
        ("same", "rig__double", r#"{"n":1}"#),
        ("same", "rig__fail", r#"{"__proto__":{"admin":true}}"#),
        ("", "__proto__", r#"{"__proto__":1}"#),
    ]);
    for format in [Format::OpenAiChat, Format::Anthropic, Format::OpenAiResponses] {
        let decoded = answer(format, Reply::stream(&turn.stream(format))).await.unwrap();
        let ids: std::collections::BTreeSet<_> = decoded.calls.iter().map(|call| call.call.id.clone()).collect();
        assert_eq!(ids.len(), decoded.calls.len(), "{format}: two calls never share an id");
        assert!(decoded.calls.iter().all(|call| call.status() == "ok"), "{format}");
    }
}

#[tokio::test]
async fn the_user_sees_what_happened() {
    let server = Server::start([
        Reply::body("200 OK", "content-type: text/html\r\n", b"<html>"),
        Reply::stream(&Turn::text("Here I am.").stream(Format::OpenAiChat)),
    ])
    .unwrap();
    let catalog = ToolCatalog::builder().build().unwrap();
    let run = ToolRunner::builder(catalog, ToolPolicy::deny_all()).build().unwrap().run(RunOptions::new());
    let model = client(Format::OpenAiChat, &server).build().unwrap();
    let mut conversation = Agent::new(model).converse(run);
    let TurnOutcome::Stopped { reason, .. } = conversation.send("Hello?").await else { panic!("no answer") };
    assert!(reason.to_string().contains("check the URL and the format"), "{reason}");
    assert!(matches!(conversation.send("Hello?").await, TurnOutcome::Answered { text } if text == "Here I am."));
}
