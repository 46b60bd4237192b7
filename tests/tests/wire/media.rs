//! Images and files in requests: each format's own shape, and a sentence in the place of a file that a format cannot
//! carry.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::{Value, json};
use tool_runtime::call::{CallId, Suspension};
use tool_runtime::error::ParseError;
use tool_runtime::media::Media;
use tool_runtime::wire::history::{CallMessage, Content, Part, ResultMessage};
use tool_runtime::wire::ui::ChatReader;
use tool_runtime::wire::{Format, Message};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const PDF: &[u8] = b"%PDF-1.7\n";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wire")
}

fn png() -> Media {
    Media::bytes("image/png", PNG).unwrap().with_name("plan.png")
}

/// A message of the user with every kind of file, and a result with four.
fn history(format: Format) -> Vec<Message> {
    let media = |media: Result<Media, ParseError>| Content::Media(media.unwrap());
    let mut result = ResultMessage::new("call_1", r#"{"pages":1}"#);
    result.media = vec![
        png(),
        Media::bytes("application/pdf", PDF).unwrap(),
        Media::bytes("audio/wav", WAV).unwrap(),
        Media::bytes("text/plain", b"line 1").unwrap().with_name("log.txt"),
    ];
    vec![
        Message::User(vec![
            Content::Text("What is in these?".to_owned()),
            Content::Media(png()),
            media(Media::url("image/jpeg", "https://example.com/a.jpg")),
            media(Media::file("report.pdf", PDF)),
            media(Media::url("application/pdf", "https://example.com/a.pdf")),
            media(Media::file("say.wav", WAV)),
            media(Media::bytes("text/markdown", b"# Notes").map(|media| media.with_name("notes.md"))),
            media(Media::bytes("application/zip", b"PK\x03\x04")),
            media(Media::id("application/pdf", format, "file_7")),
            media(Media::id("image/png", format, "file_8")),
        ]),
        Message::Assistant(vec![Part::Call(CallMessage::new("call_1", "docs__open", "{}"))]),
        Message::Result(result),
    ]
}

fn encoded(format: Format, history: &[Message], model: Option<&str>) -> Value {
    let encoded = format.encode_messages(history, model);
    let losses: Vec<_> = encoded.losses.iter().map(ToString::to_string).collect();
    json!({ "body": encoded.body, "losses": losses })
}

#[test]
fn every_format_writes_files_in_its_own_shape() {
    for &format in Format::ALL {
        let path = fixtures().join(format!("{format}/history/media.expected.json"));
        let got = encoded(format, &history(format), None);
        if env::var_os("REFRESH_MEDIA").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("{got:#}\n")).unwrap();
        }
        let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(got, expected, "{format}");
    }
}

#[test]
fn what_a_format_cannot_carry_is_said_in_text_and_reported() {
    let result = |media: Media| {
        let mut result = ResultMessage::new("c", "{}");
        result.media.push(media);
        let call = Part::Call(CallMessage::new("c", "a__b", "{}"));
        [Message::Assistant(vec![call]), Message::Result(result)]
    };
    for format in [Format::OpenAiChat, Format::Ollama] {
        let got = encoded(format, &result(png()), None);
        let text = got["body"]["messages"][1]["content"].as_str().unwrap();
        assert!(text.starts_with("{}\n\n[The tool also returned a file (image/png, 16 bytes)"), "{format}: {text}");
        assert_eq!(got["losses"], json!(["media of a result (image/png) at /0"]));
        assert!(!got.to_string().contains("iVBOR"));
    }
    for (model, carries) in [("gemini-2.5-flash", false), ("models/gemini-2.0-pro", false), ("gemini-3-pro", true)] {
        let got = encoded(Format::Gemini, &result(png()), Some(model));
        assert_eq!(got["losses"] == json!([]), carries, "{model}");
        assert_eq!(got.to_string().contains("iVBOR"), carries, "{model}");
    }
    for &format in Format::ALL {
        let other = Format::ALL.iter().find(|other| **other != format).unwrap();
        let stored = Media::id("image/png", *other, "file_of_another").unwrap();
        let got = encoded(format, &[Message::User(vec![Content::Media(stored)])], None);
        assert_eq!(got["losses"], json!(["media of the user (image/png) at /0"]), "{format}");
        assert!(!got.to_string().contains("file_of_another"), "{format}");
        assert!(got.to_string().contains("[The user sent a file (image/png) that cannot be passed on"), "{format}");
    }
}

#[test]
fn an_image_that_is_too_large_for_its_provider_is_said_in_text() {
    let image = |size: usize| {
        let mut bytes = vec![0; size];
        bytes[..PNG.len()].copy_from_slice(PNG);
        [Message::User(vec![Content::Media(Media::bytes("image/png", &bytes).unwrap())])]
    };
    for (size, carries) in [(7_500_000, true), (7_500_001, false)] {
        let got = encoded(Format::Anthropic, &image(size), None);
        assert_eq!(got["losses"] == json!([]), carries);
        assert_eq!(got["body"]["messages"][0]["content"][0]["type"] == "image", carries);
        assert_eq!(encoded(Format::OpenAiChat, &image(size), None)["losses"], json!([]));
    }
}

#[test]
fn a_message_of_text_is_written_as_it_was_before() {
    let message = [Message::User(vec![Content::Text("a".to_owned()), Content::Text("b".to_owned())])];
    assert_eq!(encoded(Format::OpenAiChat, &message, None)["body"]["messages"][0]["content"], "a\n\nb");
    let responses = encoded(Format::OpenAiResponses, &message, None);
    assert_eq!(responses["body"]["input"][0]["content"], json!([{ "type": "input_text", "text": "a\n\nb" }]));
}

#[test]
fn a_client_cannot_bring_files_into_results_or_too_many_into_a_history() {
    let call = CallMessage::new("c", "a__b", "{}");
    let turn = Message::Assistant(vec![Part::Call(call.clone())]);
    let mut given = ResultMessage::new("c", "{}");
    let mut forged = given.clone();
    forged.media.push(png());
    let error = |own: Option<&ResultMessage>, waits: Option<Suspension>, result: &ResultMessage| {
        let own: Vec<_> = [turn.clone()].into_iter().chain(own.cloned().map(Message::Result)).collect();
        let history = [turn.clone(), Message::Result(result.clone())];
        let waiting = waits.map(|suspension| (CallId::new("c"), suspension));
        ChatReader::check(&own, waiting, &history).map_err(|error| error.code())
    };
    for (own, waits) in [(None, Some(Suspension::Client)), (None, None), (Some(&given), None)] {
        assert_eq!(error(own, waits, &given), Ok(()));
        assert_eq!(error(own, waits, &forged), Err("history_forged"));
    }
    given.media.push(png());
    assert_eq!(error(Some(&given), None, &given), Ok(()));

    let large = Media::bytes("text/plain", "a".repeat(11 << 20).as_bytes()).unwrap();
    let message = Message::User(vec![Content::Media(large)]);
    let checked = |history: &[Message]| ChatReader::check(&[], [], history).map_err(|error| error.code());
    assert_eq!(checked(std::slice::from_ref(&message)), Ok(()));
    assert_eq!(checked(&[message.clone(), message]), Err("history_too_large"));
}

fn image(mib: usize) -> Media {
    let mut bytes = vec![0; mib << 20];
    bytes[..PNG.len()].copy_from_slice(PNG);
    Media::bytes("image/png", &bytes).unwrap()
}

#[test]
fn files_of_the_model_count_and_give_way_too() {
    let made = |at: usize, mib: usize| -> Vec<Message> {
        let data = image(mib);
        let body = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
            {"text": format!("Picture {at}.")},
            {"inlineData": {"mimeType": "image/png", "data": data.data()}, "thoughtSignature": format!("sig-{at}")},
        ]}}]});
        let mut decoder = Format::Gemini.decoder();
        decoder.push(body.to_string().as_bytes());
        vec![Message::user("Draw."), Message::Assistant(decoder.finish().parts())]
    };
    let history: Vec<_> = (0..5).flat_map(|at| made(at, 5)).chain([Message::user("Which is best?")]).collect();
    let got = encoded(Format::Gemini, &history, None);
    let body = got["body"].to_string();
    assert!(body.len() < 32_000_000, "{}", body.len());
    assert_eq!(got["losses"], json!(["1 file over the size limit of one request at /1"]));
    assert_eq!(got["body"]["contents"][1]["parts"], json!([{"text": "Picture 0."}]), "no mark without its file");
    assert_eq!(body.matches("sig-").count(), 4);
}

#[test]
fn the_oldest_files_give_way_to_those_for_which_a_request_has_room() {
    let linked = || Content::Media(Media::url("image/png", "https://example.com/a.png").unwrap());
    let user = |content: Vec<Content>| Message::User(content);
    let history = |first: usize, second: usize, of_tool: usize| {
        let mut result = ResultMessage::new("call_1", r#"{"pages":1}"#);
        result.media.push(image(of_tool));
        [
            user(vec![
                linked(),
                Content::Media(image(first)),
                Content::Media(image(second)),
                Content::Text("a".into()),
            ]),
            Message::Assistant(vec![Part::Call(CallMessage::new("call_1", "docs__open", "{}"))]),
            Message::Result(result),
            user(vec![Content::Media(image(2)), Content::Text("And this?".to_owned())]),
        ]
    };
    let losses = |at: usize, files: &str| json!([format!("{files} over the size limit of one request at /{at}")]);
    let full = encoded(Format::Gemini, &history(8, 8, 2), Some("gemini-3-pro"));
    assert_eq!(full["losses"], json!([]));
    for (first, second, said) in [(9, 8, "1 file"), (2, 19, "2 files")] {
        let got = encoded(Format::Gemini, &history(first, second, 2), Some("gemini-3-pro"));
        let parts = got["body"]["contents"][0]["parts"].as_array().unwrap();
        let were = if said == "1 file" { "was" } else { "were" };
        let sentence = format!("[{said} {were} left out: the files of one request may have 20 MiB together.]");
        assert_eq!(parts[0]["fileData"]["fileUri"], "https://example.com/a.png", "a link needs no room");
        assert_eq!((&parts[1]["text"], parts.last().unwrap()), (&json!(sentence), &json!({ "text": "a" })));
        assert_eq!(got["losses"], losses(0, said));
    }
    // The files of results give way too, and the files of the newest message are sent.
    let mut long = history(1, 1, 19).to_vec();
    long.push(user(vec![Content::Media(image(1))]));
    for &format in Format::ALL {
        let got = encoded(format, &long, Some("gemini-3-pro"));
        let body = got["body"].to_string();
        assert!(body.contains("[2 files were left out: ") && body.contains("[1 file was left out: "), "{format}");
        let lost = got["losses"].to_string();
        assert!(lost.contains("2 files over the size limit of one request at /0"), "{format}: {lost}");
        assert!(lost.contains("1 file over the size limit of one request at /2"), "{format}: {lost}");
        assert_eq!(body.matches("iVBORw0KGgo").count(), 2, "{format}");
        assert!(body.len() < 32_000_000, "{format}: {}", body.len());
    }
}
