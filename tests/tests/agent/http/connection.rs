//! How requests are made: their content, their time limits, their repetition, and the certificates that are trusted.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;

use super::*;

/// Settings of a client.
type Configure = fn(HttpModelBuilder) -> HttpModelBuilder;

/// A limit of a client.
type Limit = fn(HttpModelBuilder, Duration) -> HttpModelBuilder;

/// The first limit for a stream that never ends; a busy machine gets a longer one.
const SHORT: Duration = Duration::from_millis(150);

/// A server with a certificate of a private authority: it answers every connection with the same bytes.
fn tls_server(reply: &'static str) -> String {
    let pem = |name: &str| fixtures("tls").join(name);
    let certificates = CertificateDer::pem_file_iter(pem("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(pem("server.key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap());
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            // A client that does not trust the certificate hangs up.
            if std::io::Read::read(&mut stream, &mut vec![0; 1 << 16]).is_ok() {
                stream.write_all(reply.as_bytes()).unwrap();
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        }
    });
    url
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
    assert_eq!(kind(ask(&model).await), Ok(429), "repetitions are bounded");

    let patient = Reply::body("429 Too Many Requests", "retry-after: 86400\r\n", b"");
    let server = Server::start([patient, reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(kind(ask(&model).await), Ok(429), "a day is too long to wait");

    let server = Server::start([Reply::body("400 Bad Request", "", b""), reply.clone()]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(kind(ask(&model).await), Ok(400));
    assert_eq!(server.asked().len(), 1, "what the client got wrong stays wrong");

    // A request is not repeated after its answer began, because the first half was shown.
    let server = Server::start([reply.clone().cut_at(reply.len() / 2), reply]).unwrap();
    let model = client(Format::OpenAiChat, &server).retries(5).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().finish, FinishReason::Truncated);
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
        // A head without a body counts as silence, too.
        (vec![head(), good.clone()], Some(2), 2),
        (vec![Reply::silence(), head(), good.clone()], None, 2),
    ] {
        let mut limit = SHORT;
        loop {
            let server = Server::start(replies.clone()).unwrap();
            let model = client(Format::Anthropic, &server).retries(5).first_byte_timeout(limit);
            match (ask(&model.build().unwrap()).await, calls) {
                (Ok(decoded), Some(calls)) => assert_eq!(decoded.calls.len(), calls),
                // A busy machine gets more time.
                (answer, Some(_)) => {
                    assert_eq!(kind(answer), Err("model_timeout"));
                    limit *= 2;
                    continue;
                }
                (answer, None) => assert_eq!(kind(answer), Err("model_timeout")),
            }
            assert_eq!(server.asked().len(), asked);
            break;
        }
    }
}

#[tokio::test]
async fn what_arrived_before_a_timeout_is_kept() {
    for &format in Format::ALL {
        let body = Turn::text("All that was said before.").stream(format);
        let reply = Reply::stream(&body);
        // Up to the end of the first frame that holds the text.
        let text = body.find("before.").expect("the text");
        let frame = text + body[text..].find('\n').expect("an end") + usize::from(format != Format::Ollama) + 1;
        let half = reply.len() - body.len() + frame;
        let limits: [(&str, Limit); 2] =
            [("silent", |model, limit| model.idle_timeout(limit)), ("longer", |model, limit| model.timeout(limit))];
        for (word, with) in limits {
            let mut limit = SHORT;
            let (server, decoded) = loop {
                let server = Server::start([reply.clone().cut_at(half).and_hang()]).unwrap();
                match ask(&with(client(format, &server), limit).build().unwrap()).await {
                    Ok(decoded) if decoded.text.ends_with("before.") => break (server, decoded),
                    // A busy machine gets more time.
                    Ok(_) => {}
                    Err(error) => assert_eq!(kind_of(&error), Err("model_timeout"), "{format} {word}"),
                }
                limit *= 2;
            };
            let error = decoded.error.clone().expect("it broke off");
            assert_eq!((decoded.finish, error.code()), (FinishReason::Truncated, "truncated_stream"), "{format}");
            assert!(error.message.is_some_and(|message| message.contains(word)), "{format} {word}");
            assert_eq!(decoded.text, "All that was said before.", "{format} {word}");
            assert_eq!(server.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_refusal_that_never_ends_is_given_up() {
    for reply in [
        Reply::recorded(&b"HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\nsorry"[..]).and_hang(),
        Reply::recorded(&b"HTTP/1.1 400 Bad Request\r\n\r\nsorry"[..])
            .in_pieces(4, Duration::from_millis(5))
            .and_hang(),
        Reply::forever("sorry").with_status("400 Bad Request"),
    ] {
        let mut limit = SHORT;
        let error = loop {
            let server = Server::start([reply.clone()]).unwrap();
            let model = client(Format::OpenAiChat, &server).timeout(limit).build().unwrap();
            let error = ask(&model).await.expect_err("refused");
            // A busy machine gets more time.
            if kind_of(&error) != Err("model_timeout") && !error.detail().is_empty() {
                break error;
            }
            limit *= 2;
        };
        assert_eq!(kind_of(&error), Ok(400));
        assert!(error.detail().starts_with("sor") && error.detail().len() <= 16 << 10, "{}", error.detail().len());
    }
}

#[tokio::test]
async fn requests_hold_what_the_application_sets() {
    let tool_less = |format: Format, configure: Configure, settings: RequestSettings| async move {
        let server = Server::start([Reply::stream(&Turn::text("Hi.").stream(format))]).unwrap();
        ask_with(&configure(client(format, &server)).build().unwrap(), &settings).await.unwrap();
        let asked = server.asked().remove(0);
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        (asked.head.to_ascii_lowercase(), body)
    };
    let plain = |model: HttpModelBuilder| model;
    let new = RequestSettings::new;
    let (head, body) = tool_less(Format::OpenAiChat, plain, new().temperature(0.5)).await;
    assert!(head.contains("user-agent: tool-runtime/"), "{head}");
    assert_eq!((&body["temperature"], body.get("max_completion_tokens")), (&json!(0.5), None));
    let mine: Configure = |model| model.header("user-agent", "mine");
    let limit = new().legacy_max_tokens(true).max_output_tokens(9);
    let (head, body) = tool_less(Format::OpenAiChat, mine, limit).await;
    assert!(head.contains("user-agent: mine") && !head.contains("tool-runtime"), "{head}");
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(9), None));
    let (_, body) = tool_less(Format::Ollama, plain, new().seed(7).extra("options", json!({"num_ctx": 8192}))).await;
    assert_eq!(body["options"], json!({"seed": 7, "num_ctx": 8192}));
    let endless = |model: HttpModelBuilder| model.timeout(Duration::MAX).idle_timeout(Duration::MAX);
    let (_, body) = tool_less(Format::Anthropic, endless, new()).await;
    assert_eq!(body["max_tokens"], json!(16_000));
    let (_, body) = tool_less(Format::Anthropic, plain, new().reasoning(ReasoningEffort::Tokens(2048))).await;
    assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(18_048), &json!(2048)));
    let (_, body) = tool_less(Format::Anthropic, plain, new().reasoning(ReasoningEffort::Max)).await;
    assert_eq!(body["max_tokens"], json!(64_000));
    let (_, body) =
        tool_less(Format::Anthropic, plain, new().reasoning(ReasoningEffort::Max).max_output_tokens(7)).await;
    assert_eq!(body["max_tokens"], json!(7));
    let (_, body) = tool_less(Format::OpenAiResponses, plain, new().extra("store", true)).await;
    assert_eq!(body["store"], json!(true));
    let (_, body) = tool_less(Format::Gemini, plain, new().top_p(0.5)).await;
    assert_eq!(body["generationConfig"], json!({"topP": 0.5}));
}

#[tokio::test]
async fn settings_that_cannot_be_sent_reach_no_endpoint() {
    for (settings, word) in [
        (RequestSettings::new().extra("messages", json!([])), "`extra.messages`"),
        (RequestSettings::new().temperature(f64::NAN), "`temperature`"),
        (RequestSettings::new().tool_choice(ToolChoice::Named("math__unknown".to_owned())), "not offered"),
    ] {
        let model = HttpModel::builder(Format::OpenAiChat, "http://127.0.0.1:1", "m").build().unwrap();
        let error = ask_with(&model, &settings).await.expect_err(word);
        assert_eq!(kind_of(&error), Err("model_request_invalid"));
        assert!(error.detail().contains(word), "{}", error.detail());
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let body = Turn::text("Trusted.").stream(Format::OpenAiChat);
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}");
    let url = tls_server(reply.leak());
    let model = || HttpModel::builder(Format::OpenAiChat, url.clone(), "m").retries(0);
    assert_eq!(kind(ask(&model().build().unwrap()).await), Err("model_unreachable"));
    let authority = std::fs::read(fixtures("tls").join("authority.pem")).unwrap();
    let model = model().root_certificates(authority).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().text, "Trusted.");
}

#[tokio::test]
async fn a_proxy_gets_the_whole_address() {
    let proxy = Server::start([Reply::stream(&Turn::text("Through.").stream(Format::OpenAiChat))]).unwrap();
    let model = HttpModel::builder(Format::OpenAiChat, "http://model.invalid", "m").proxy(proxy.url()).build().unwrap();
    assert_eq!(ask(&model).await.unwrap().text, "Through.");
    assert!(proxy.asked()[0].head.starts_with("POST http://model.invalid/v1/chat/completions"), "{:?}", proxy.asked());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (format, url) in [(Format::OpenAiChat, "no url"), (Format::OpenAiChat, "ftp://example.org")] {
        let error = HttpModel::builder(format, url, "m").build().expect_err("it cannot work");
        assert_eq!(kind_of(&error), Err("model_request_invalid"), "{url}");
    }
    let refused: [(Format, Configure, &str); 5] = [
        (Format::Ollama, |model| model.header("x y", "1"), "`x y`"),
        (Format::Ollama, |model| model.header("x-y", "a\nb"), "`x-y`"),
        (Format::Ollama, |model| model.header("Content-Length", "1"), "leave it out"),
        (Format::Ollama, |model| model.root_certificates("no certificate"), "PEM"),
        (Format::Ollama, |model| model.proxy("socks5://user:CANARY@127.0.0.1"), "http://"),
    ];
    for (format, configure, word) in refused {
        let error = configure(HttpModel::builder(format, "http://127.0.0.1:1", "m")).build().expect_err(word);
        assert!(error.detail().contains(word) && !error.detail().contains("CANARY"), "{}", error.detail());
    }
    for model in ["", "/", "a//b", "..", "../keys", "models/../../x", "a?b", "a#b", "a:b", "a b", "a%2fb"] {
        let error = HttpModel::builder(Format::Gemini, "http://127.0.0.1:1", model).build().expect_err(model);
        assert!(error.detail().contains("URL"), "{}", error.detail());
    }
    let shown =
        format!("{:?}", HttpModel::builder(Format::Ollama, "http://127.0.0.1:1", "m").key("CANARY").build().unwrap());
    assert!(!shown.contains("CANARY"), "{shown}");
}
