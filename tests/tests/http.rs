//! The HTTP clients against servers on loopback: recorded responses, broken ones, hostile ones.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tests::provider::Turn;
use tests::server::{Reply, Server};
use tests::wire::{fixtures, read_json, same};
use tests::{six_turns, wire};
use tool_runtime::agent::http::{HttpModel, HttpModelBuilder, OutputLimitField};
use tool_runtime::agent::{Agent, Ended, ModelClient, ModelError, ModelErrorKind};
use tool_runtime::wire::{CallStatus, Decoded, Finish, Format, Message, WireErrorKind};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

const READABLE: [Format; 4] = [Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Ollama];

fn client(format: Format, server: &Server) -> HttpModelBuilder {
    HttpModel::builder(format, server.url(), "m").retries(0).idle_timeout(Duration::from_secs(10))
}

async fn ask(model: &HttpModel) -> Result<Decoded, ModelError> {
    let catalog = ToolCatalog::builder().build().unwrap();
    let run = ToolRunner::builder(catalog, ToolPolicy::deny_all()).build().unwrap().run(RunOptions::new());
    let messages = [Message::User("Hello?".to_owned())];
    model.complete(tool_runtime::agent::ModelRequest::new(&messages, run.catalog()), &mut |_| {}).await
}

async fn answer(format: Format, reply: Reply) -> Result<Decoded, ModelError> {
    let server = Server::start([reply]).unwrap();
    ask(&client(format, &server).build().unwrap()).await
}

fn kind(result: Result<Decoded, ModelError>) -> ModelErrorKind {
    result.expect_err("an error").kind()
}

fn good() -> Turn {
    Turn { text: "Hm.".to_owned(), ..Turn::calls([("c1", "six__double", r#"{"n":1}"#), ("c2", "six__fail", "{}")]) }
}

#[tokio::test]
async fn six_turns_run_in_every_format() {
    for format in READABLE {
        for strict in [false, true] {
            let six = six_turns::hold(format, strict).await.unwrap();
            assert!(matches!(&six.ended, Ended::Answered { text } if text.contains("line 7")), "{:?}", six.ended);
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
                assert_eq!((&body["model"], &body["stream"]), (&Value::from("m"), &Value::from(true)));
                assert!(!asked.body.contains("Is not allowed."), "what is denied is not offered");
                let key = if format == Format::Anthropic { "x-api-key: a key" } else { "authorization: bearer a key" };
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
            assert_eq!(kind(over_http), ModelErrorKind::Status(status), "{}", case["id"]);
        }
        seen += 1;
    }
    assert!(seen > 100);
}

#[tokio::test]
async fn a_cut_at_every_byte_runs_nothing() {
    for format in READABLE {
        let reply = Reply::stream(&good().stream(format));
        let length = reply.len();
        let server = Server::start((0..=length).map(|cut| reply.clone().cut_at(cut))).unwrap();
        let model = client(format, &server).build().unwrap();
        let whole = wire::result(&answer(format, reply.clone()).await.unwrap());
        let mut runnable = 0;
        for cut in 0..=length {
            match ask(&model).await {
                Err(error) => assert!(
                    matches!(error.kind(), ModelErrorKind::Connect | ModelErrorKind::Protocol),
                    "{format} {cut}: {error:?}"
                ),
                Ok(decoded) if decoded.calls.iter().any(|call| call.executable) => {
                    // What may run is the whole of it.
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
    for format in READABLE {
        let html = "content-type: text/html; charset=utf-8\r\n";
        let cases = [
            (Reply::body("401 Unauthorized", "", b"{\"error\":\"no\"}"), ModelErrorKind::Status(401)),
            (Reply::body("404 Not Found", html, b"<html>"), ModelErrorKind::Status(404)),
            (Reply::body("500 Internal Server Error", "", b""), ModelErrorKind::Status(500)),
            (Reply::body("302 Found", "location: http://127.0.0.1:1/\r\n", b""), ModelErrorKind::Redirect),
            (Reply::body("307 Temporary Redirect", "location: /elsewhere\r\n", b""), ModelErrorKind::Redirect),
            (Reply::body("200 OK", html, b"<html><body>Sign in</body></html>"), ModelErrorKind::Protocol),
            (Reply::body("200 OK", "content-type: application/json\r\n", b""), ModelErrorKind::Protocol),
            (Reply::body("204 No Content", "", b""), ModelErrorKind::Protocol),
            (Reply::recorded(&b"garbage\r\n\r\n"[..]), ModelErrorKind::Connect),
            (Reply::recorded(&b""[..]), ModelErrorKind::Connect),
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
    assert_eq!(error.kind(), ModelErrorKind::Connect);
    assert!(!error.to_string().contains("127.0.0.1"));
}

#[tokio::test]
async fn what_another_attempt_may_change_is_tried_again() {
    let reply = Reply::stream(&good().stream(Format::OpenAiChat));
    let busy = || Reply::body("429 Too Many Requests", "retry-after: 0\r\n", b"");
    let broken = || Reply::body("503 Service Unavailable", "retry-after: 0\r\n", b"");
    let server = Server::start([busy(), broken(), reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(2).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().calls.len(), 2);
    assert_eq!(server.asked().len(), 3);

    let server = Server::start([busy(), busy(), reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(1).build().unwrap();
    assert_eq!(kind(ask(&model).await), ModelErrorKind::Status(429), "repetitions are bounded");

    let patient = Reply::body("429 Too Many Requests", "retry-after: 86400\r\n", b"");
    let server = Server::start([patient, reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(kind(ask(&model).await), ModelErrorKind::Status(429), "a day is too long to wait");

    let server = Server::start([Reply::body("400 Bad Request", "", b""), reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(kind(ask(&model).await), ModelErrorKind::Status(400));
    assert_eq!(server.asked().len(), 1, "what the client got wrong stays wrong");

    // An answer that began is not asked for again: its first half was shown.
    let server = Server::start([reply.clone().cut_at(reply.len() / 2), reply]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().finish, Finish::Truncated);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn the_endpoint_says_whether_and_when_to_ask_again() {
    let reply = Reply::stream(&good().stream(Format::OpenAiChat));
    for (status, headers, attempts) in [
        ("408 Request Timeout", "retry-after-ms: 1\r\n", 2),
        ("409 Conflict", "retry-after: 0.001\r\n", 2),
        ("400 Bad Request", "x-should-retry: true\r\nretry-after-ms: 1\r\n", 2),
        ("503 Service Unavailable", "x-should-retry: false\r\n", 1),
        ("429 Too Many Requests", "retry-after-ms: 86400000\r\n", 1),
    ] {
        let server = Server::start([Reply::body(status, headers, b""), reply.clone()]).unwrap();
        let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
        assert_eq!(ask(&model).await.is_ok(), attempts == 2, "{status}");
        assert_eq!(server.asked().len(), attempts, "{status}");
    }
    let server = Server::start([Reply::body("429 Too Many Requests", "retry-after-ms: 300\r\n", b""), reply]).unwrap();
    let started = std::time::Instant::now();
    assert!(ask(&client(Format::OpenAiChat, &server).retries(1).build().unwrap()).await.is_ok());
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn silence_before_an_answer_is_tried_once_more() {
    let good = Reply::stream(&good().stream(Format::Anthropic));
    let head = || Reply::stream("").and_hang();
    for (replies, calls, asked) in [
        (vec![Reply::silence(), good.clone()], Some(2), 2),
        // A head without a body is silence too.
        (vec![head(), good.clone()], Some(2), 2),
        (vec![Reply::silence(), head(), good.clone()], None, 2),
    ] {
        let server = Server::start(replies).unwrap();
        let model = client(Format::Anthropic, &server).retries(5).first_byte_timeout(Duration::from_millis(150));
        match (ask(&model.build().unwrap()).await, calls) {
            (Ok(decoded), Some(calls)) => assert_eq!(decoded.calls.len(), calls),
            (answer, _) => assert_eq!(kind(answer), ModelErrorKind::Timeout),
        }
        assert_eq!(server.asked().len(), asked);
    }
}

#[tokio::test]
async fn what_arrived_before_a_timeout_is_kept() {
    for format in READABLE {
        let body = Turn::text("All that was said before.").stream(format);
        let reply = Reply::stream(&body);
        // Up to the end of the first frame that holds the text.
        let text = body.find("before.").expect("the text");
        let frame = text + body[text..].find("\n").expect("an end") + usize::from(format != Format::Ollama) + 1;
        let half = reply.len() - body.len() + frame;
        let limits: [(&str, fn(HttpModelBuilder) -> HttpModelBuilder); 2] = [
            ("silent", |model| model.idle_timeout(Duration::from_millis(150))),
            ("longer", |model| model.timeout(Duration::from_millis(300))),
        ];
        for (word, limit) in limits {
            let server = Server::start([reply.clone().cut_at(half).and_hang()]).unwrap();
            let decoded = ask(&limit(client(format, &server)).build().unwrap()).await.unwrap();
            let error = decoded.error.clone().expect("it broke off");
            assert_eq!((decoded.finish, error.kind), (Finish::Truncated, WireErrorKind::TruncatedStream), "{format}");
            assert!(error.message.is_some_and(|message| message.contains(word)), "{format} {word}");
            assert_eq!(decoded.text, "All that was said before.", "{format} {word}");
            assert_eq!(server.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn requests_hold_what_the_application_sets() {
    let tool_less = |format: Format, configure: fn(HttpModelBuilder) -> HttpModelBuilder| async move {
        let server = Server::start([Reply::stream(&Turn::text("Hi.").stream(format))]).unwrap();
        ask(&configure(client(format, &server)).build().unwrap()).await.unwrap();
        let asked = server.asked().remove(0);
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        (asked.head.to_ascii_lowercase(), body)
    };
    let (head, body) = tool_less(Format::OpenAiChat, |model| model.body_field("temperature", 0.5)).await;
    assert!(head.contains("user-agent: tool-runtime/"), "{head}");
    assert_eq!((&body["temperature"], &body["max_completion_tokens"]), (&json!(0.5), &json!(4096)));
    let (head, body) = tool_less(Format::OpenAiChat, |model| {
        model.output_limit_field(OutputLimitField::MaxTokens).max_output_tokens(9).header("user-agent", "mine")
    })
    .await;
    assert!(head.contains("user-agent: mine") && !head.contains("tool-runtime"), "{head}");
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(9), None));
    let (_, body) = tool_less(Format::Ollama, |model| model.body_field("options", json!({"seed": 7}))).await;
    assert_eq!(body["options"], json!({"num_predict": 4096, "seed": 7}));
    let (_, body) = tool_less(Format::OpenAiResponses, |model| model.body_field("store", true)).await;
    assert_eq!(body["store"], json!(true));
}

#[tokio::test]
async fn a_proxy_gets_the_whole_address() {
    let proxy = Server::start([Reply::stream(&Turn::text("Through.").stream(Format::OpenAiChat))]).unwrap();
    let model = HttpModel::builder(Format::OpenAiChat, "http://model.invalid", "m").proxy(proxy.url()).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().text, "Through.");
    assert!(proxy.asked()[0].head.starts_with("POST http://model.invalid/v1/chat/completions"), "{:?}", proxy.asked());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn gzip_is_read_within_the_limit() {
    for format in READABLE {
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
        assert_eq!(kind(answer(format, other).await), ModelErrorKind::Protocol, "{format}");
        // 64 MiB of comments in 64 KiB.
        let bomb = gzip(&vec![b':'; 64 << 20]);
        let server = Server::start([Reply::body("200 OK", headers, &bomb)]).unwrap();
        let model = client(format, &server).max_response_bytes(1 << 20).build().unwrap();
        let decoded = ask(&model).await.unwrap();
        assert_eq!(decoded.error.unwrap().kind, WireErrorKind::LimitExceeded, "{format}");
    }
}

#[tokio::test]
async fn a_stream_without_end_ends() {
    for format in READABLE {
        let server = Server::start([Reply::forever(&": nothing\n\n".repeat(1000))]).unwrap();
        let model = client(format, &server).max_response_bytes(1 << 20).build().unwrap();
        let decoded = ask(&model).await.unwrap();
        assert!(!decoded.ended_well(), "{format}: {decoded:?}");
    }
    // One frame of 16 MB: twice what a frame may be.
    let frame = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(16 << 20));
    let decoded = answer(Format::OpenAiChat, Reply::stream(&frame)).await.unwrap();
    assert_eq!(decoded.error.unwrap().kind, WireErrorKind::LimitExceeded);
}

#[tokio::test]
async fn hostile_calls_stay_apart() {
    let turn = Turn::calls([
        ("same", "six__double", r#"{"n":1}"#),
        ("same", "six__fail", r#"{"__proto__":{"admin":true}}"#),
        ("", "__proto__", r#"{"__proto__":1}"#),
    ]);
    for format in [Format::OpenAiChat, Format::Anthropic, Format::OpenAiResponses] {
        let decoded = answer(format, Reply::stream(&turn.stream(format))).await.unwrap();
        let ids: std::collections::BTreeSet<_> = decoded.calls.iter().map(|call| call.call.id.clone()).collect();
        assert_eq!(ids.len(), decoded.calls.len(), "{format}: two calls never share an id");
        assert!(decoded.calls.iter().all(|call| call.status == CallStatus::Ok), "{format}");
    }
}

#[tokio::test]
async fn the_user_is_told_what_happened() {
    let server = Server::start([
        Reply::body("200 OK", "content-type: text/html\r\n", b"<html>"),
        Reply::stream(&Turn::text("Here I am.").stream(Format::OpenAiChat)),
    ])
    .unwrap();
    let catalog = ToolCatalog::builder().build().unwrap();
    let run = ToolRunner::builder(catalog, ToolPolicy::deny_all()).build().unwrap().run(RunOptions::new());
    let model = client(Format::OpenAiChat, &server).build().unwrap();
    let mut conversation = Agent::new(model).converse(run);
    let Ended::Stopped { reason, .. } = conversation.send("Hello?").await else { panic!("no answer") };
    assert!(reason.to_string().contains("is this the right URL and format?"), "{reason}");
    assert!(matches!(conversation.send("Hello?").await, Ended::Answered { text } if text == "Here I am."));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (format, url) in [
        (Format::OpenAiChat, "no url"),
        (Format::OpenAiChat, "ftp://example.org"),
        (Format::Gemini, "https://example.org"),
    ] {
        let error = HttpModel::builder(format, url, "m").build().expect_err("it cannot work");
        assert_eq!(error.kind(), ModelErrorKind::Encode, "{url}");
    }
    let refused: [(Format, fn(HttpModelBuilder) -> HttpModelBuilder, &str); 13] = [
        (Format::Ollama, |model| model.header("x y", "1"), "`x y`"),
        (Format::Ollama, |model| model.header("x-y", "a\nb"), "`x-y`"),
        (Format::Ollama, |model| model.header("Content-Length", "1"), "leave it out"),
        (Format::OpenAiChat, |model| model.body_field("messages", json!([])), "`messages`"),
        (Format::OpenAiChat, |model| model.body_field("max_tokens", 1), "`max_tokens`"),
        (Format::Anthropic, |model| model.body_field("tools", json!([])), "`tools`"),
        (Format::OpenAiResponses, |model| model.body_field("stream", false), "`stream`"),
        (Format::OpenAiChat, |model| model.body_field("metadata", "x".repeat(65 << 10)), "at most"),
        (Format::Ollama, |model| model.body_field("options", 1), "object"),
        (Format::Ollama, |model| model.body_field("options", json!({"num_predict": 1})), "max_output_tokens"),
        (Format::Anthropic, |model| model.output_limit_field(OutputLimitField::MaxTokens), "Chat Completions"),
        (Format::Ollama, |model| model.root_certificates("no certificate"), "PEM"),
        (Format::Ollama, |model| model.proxy("socks5://user:CANARY@127.0.0.1"), "http://"),
    ];
    for (format, configure, word) in refused {
        let error = configure(HttpModel::builder(format, "http://127.0.0.1:1", "m")).build().expect_err(word);
        assert!(error.detail().contains(word) && !error.detail().contains("CANARY"), "{}", error.detail());
    }
    let shown =
        format!("{:?}", HttpModel::builder(Format::Ollama, "http://127.0.0.1:1", "m").key("CANARY").build().unwrap());
    assert!(!shown.contains("CANARY"), "{shown}");
}
