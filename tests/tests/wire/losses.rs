//! Loss reports are complete: every part of another format's turn that a format does not carry is reported.

use std::path::PathBuf;

use serde_json::Value;
use tests::wire::{decode, fixtures, read_json};
use tool_runtime::wire::history::{CallMessage, Part, ProviderState, ResultMessage};
use tool_runtime::wire::{EncodeOptions, Format, Message, RequestSettings, ToolChoice, WireTool};

/// Texts shorter than this are words of a format, such as types.
const SHORT: usize = 12;

/// Every string of a value. Strings that hold JSON are looked into, because some formats write JSON as text.
fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            out.push(text.clone());
            if let Some(inner) = serde_json::from_str::<Value>(text).ok().filter(|inner| !inner.is_string()) {
                strings(&inner, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(members) => members.values().for_each(|member| strings(member, out)),
        _ => {}
    }
}

/// The texts of a part that no request may miss without saying so, and the words of its loss.
fn said(part: &Part) -> (Vec<String>, &'static [&'static str]) {
    let sealed = |provider_state: Option<&ProviderState>| {
        let mut found = Vec::new();
        if let Some(provider_state) = provider_state {
            strings(&serde_json::from_str(provider_state.json()).unwrap(), &mut found);
        }
        found
    };
    let with = |text: &str, provider_state| [vec![text.trim().to_owned()], sealed(provider_state)].concat();
    match part {
        Part::Text { text, .. } => (with(text, part.provider_state()), &["data that only", "the id of", "citation"]),
        Part::Reasoning { text, .. } => (with(text, part.provider_state()), &["reasoning"]),
        Part::Refusal(text) => (vec![text.clone()], &["refusal"]),
        Part::Media(media) => {
            let data = media.data().and_then(|data| data.get(..40)).or(media.link()).unwrap_or_default();
            (vec![data.to_owned()], &["media"])
        }
        Part::Citation(from) => {
            let texts = [&from.title, &from.url, &from.quote].into_iter().flatten();
            (texts.cloned().collect(), &["citation"])
        }
        Part::Call(call) => {
            let mut texts = sealed(call.provider_state());
            strings(&serde_json::from_str(call.arguments()).unwrap(), &mut texts);
            (texts, &["data that only", "arguments", "the id of", "the code"])
        }
        Part::ProviderState(provider_state) => {
            // Of a container only the id goes back.
            let expiry = |text: &String| !provider_state.json().contains("\"container\"") || !text.ends_with('Z');
            (
                sealed(Some(provider_state)).into_iter().filter(expiry).collect(),
                &["data that only", "server tool", "reasoning"],
            )
        }
        _ => (Vec::new(), &[]),
    }
}

/// The texts that a request lacks without a reported loss.
fn silent(parts: &[Part], format: Format, model: Option<&str>) -> Vec<String> {
    let turn = Message::Assistant(parts.to_vec());
    let results = turn.calls().map(|call| Message::Result(ResultMessage::new(call.id.clone(), "fine")));
    let results: Vec<_> = results.collect();
    let history: Vec<_> = [Message::user("go"), turn].into_iter().chain(results).chain([Message::user("?")]).collect();
    let encoded = format.encode_messages(&history, model);
    let mut sent = Vec::new();
    strings(&serde_json::to_value(&encoded.body).unwrap(), &mut sent);
    let sent = sent.join("\n");
    let is_sent = |text: &String| text.len() < SHORT || sent.contains(text.as_str()) || text.starts_with('{');
    let lost = |words: &[&str]| encoded.losses.iter().any(|loss| words.iter().any(|word| loss.what.contains(word)));
    let parts = parts.iter().map(said).filter(|(texts, words)| !texts.iter().all(is_sent) && !lost(words));
    parts.map(|(texts, words)| format!("{words:?}: {texts:?}")).collect()
}

/// The recorded responses and those of the wire fixtures.
fn responses() -> Vec<(Format, PathBuf)> {
    let recorded = fixtures("recorded");
    let index = read_json(&recorded.join("index.json"));
    let case = |case: &Value| (case["format"].as_str().unwrap().parse().unwrap(), case["file"].clone());
    let mut all: Vec<_> = index.as_array().unwrap().iter().map(case).collect::<Vec<(Format, Value)>>();
    let mut paths: Vec<_> =
        all.drain(..).map(|(format, file)| (format, recorded.join(file.as_str().unwrap()))).collect();
    for &format in Format::ALL {
        let files = std::fs::read_dir(fixtures("wire").join(format!("{format}/stream"))).unwrap();
        paths.extend(files.map(|file| (format, file.unwrap().path())));
    }
    paths
}

#[test]
fn what_a_format_does_not_carry_of_another_is_reported() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (from, path) in responses() {
        let parts = decode(from, &std::fs::read(&path).unwrap(), usize::MAX).parts();
        let model = parts.iter().find_map(|part| part.provider_state()?.model()).map(str::to_owned);
        for &to in Format::ALL {
            for model in [None, Some("another"), model.as_deref()] {
                seen += 1;
                let silent = silent(&parts, to, model).into_iter();
                wrong.extend(silent.map(|what| format!("{} to {to} ({model:?}): {what}", path.display())));
            }
        }
    }
    assert!(seen > 3000 && wrong.is_empty(), "{} of {seen}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_the_repair_of_a_history_removes_is_reported() {
    let call = |arguments: &str| Part::Call(CallMessage::new("c", "a__b", arguments));
    let result = |id: &str| Message::Result(ResultMessage::new(id, "1"));
    let history = [
        Message::user("Go."),
        result("x"),
        Message::Assistant(vec![call("{}"), call("{}"), call("{}")]),
        result("c"),
        result("c"),
        result("y"),
        Message::Assistant(vec![Part::Call(CallMessage::new("d", "a__b", "{"))]),
        result("d"),
    ];
    for &format in Format::ALL {
        let mut lost: Vec<_> = format.encode_messages(&history, None).losses.iter().map(ToString::to_string).collect();
        lost.sort();
        let orphan = |at: usize| format!("a result without a call at /{at}");
        let twice = "a second call with the same id at /2".to_owned();
        let unread = "arguments that are not readable JSON at /6".to_owned();
        assert_eq!(lost, [orphan(1), orphan(4), orphan(5), twice.clone(), twice, unread], "{format}");
    }
}

#[test]
fn gemini_gets_names_that_it_takes() {
    let long = "x".repeat(65);
    for (name, written) in [
        ("a__b", "a__b"),
        ("default_api:a.b", "default_api:a.b"),
        ("", "unnamed"),
        ("a b", "a_b"),
        ("7a", "_a"),
        (&long, &long[..64]),
    ] {
        let turn = Message::Assistant(vec![Part::Call(CallMessage::new("c", name, "{}"))]);
        let history = [Message::user("Go."), turn, Message::Result(ResultMessage::new("c", "2"))];
        let encoded = Format::Gemini.encode_messages(&history, None);
        let body = serde_json::to_value(&encoded.body).unwrap();
        assert_eq!(body["contents"][1]["parts"][0]["functionCall"]["name"], written);
        assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["name"], written);
        assert_eq!(encoded.losses.len(), usize::from(name != written), "{name}");
    }
}

#[test]
fn a_choice_that_no_tool_can_meet_is_reported() {
    let choose = |choice| EncodeOptions::default().with_settings(RequestSettings::new().tool_choice(choice));
    for format in [Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Gemini] {
        let none: [WireTool<'_>; 0] = [];
        let forced = format.encode_tools(none, &choose(ToolChoice::Required)).unwrap();
        let lost: Vec<_> = forced.losses.iter().map(ToString::to_string).collect();
        assert_eq!(lost, ["no tool is offered, so no call can be forced at tool_choice"], "{format}");
        assert!(
            forced.body.is_empty() && format.encode_tools(none, &choose(ToolChoice::None)).unwrap().losses.is_empty()
        );
        assert!(format.encode_tools(none, &choose(ToolChoice::Named("a__b".to_owned()))).is_err());
    }
}

/// Tools of a schema without properties: their number, and the description of the first.
fn tools(count: usize, description: &str) -> Vec<(String, String)> {
    (0..count).map(|at| (format!("a__b{at}"), if at == 0 { description.to_owned() } else { "B.".to_owned() })).collect()
}

fn offer(
    format: Format,
    tools: &[(String, String)],
    options: &EncodeOptions,
) -> Result<tool_runtime::wire::Encoded, tool_runtime::wire::EncodeError> {
    let schema = r#"{"type":"object","properties":{}}"#;
    format.encode_tools(tools.iter().map(|(name, text)| WireTool::new(name, text, schema)), options)
}

#[test]
fn a_description_that_openai_refuses_is_cut_and_reported() {
    let leave_out = EncodeOptions::default().with_leave_out_unsupported(true);
    for (text, kept) in [
        ("ä".repeat(1024), 1024),
        ("ä".repeat(1025), 1024),
        ("words ".repeat(1000), 1019),
        (format!("{}. {}", "s".repeat(900), "t".repeat(500)), 901),
    ] {
        for &format in Format::ALL {
            let is_openai = matches!(format, Format::OpenAiChat | Format::OpenAiResponses);
            let (is_long, tools) = (text.chars().count() > 1024, tools(2, &text));
            let encoded = offer(format, &tools, &leave_out).unwrap();
            let body = serde_json::to_value(&encoded.body).unwrap();
            let mut sent = Vec::new();
            strings(&body, &mut sent);
            let longest = sent.iter().map(|text| text.chars().count()).max().unwrap();
            let lost: Vec<_> = encoded.losses.iter().map(ToString::to_string).collect();
            if is_openai && is_long {
                assert_eq!(longest, kept, "{format}");
                let what = "the provider takes 1024 characters of a description; the rest is not sent at description";
                assert_eq!(lost, [format!("a__b0: {what}")], "{format}");
                let refused = offer(format, &tools, &EncodeOptions::default()).unwrap_err();
                assert_eq!((refused.code(), refused.tool.as_deref()), ("description_too_long", Some("a__b0")));
                let any = leave_out.clone().with_provider_limits(false);
                assert!(offer(format, &tools, &any).unwrap().losses.is_empty());
            } else {
                assert_eq!((longest, lost.len()), (text.chars().count(), 0), "{format}");
            }
        }
    }
}

#[test]
fn more_tools_than_a_provider_takes_are_refused() {
    for &format in Format::ALL {
        let has_limit = !matches!(format, Format::Anthropic | Format::Ollama);
        for leave_out in [false, true] {
            let options = EncodeOptions::default().with_leave_out_unsupported(leave_out);
            assert_eq!(offer(format, &tools(128, ""), &options).unwrap().tools().len(), 128, "{format}");
            match offer(format, &tools(129, ""), &options) {
                Err(error) => {
                    assert!(has_limit && error.code() == "too_many_tools", "{format}");
                    assert!(error.to_string().contains("Agent::pick"), "{error}");
                }
                Ok(encoded) => assert!(!has_limit && encoded.tools().len() == 129, "{format}"),
            }
            let any = options.with_provider_limits(false);
            assert_eq!(offer(format, &tools(129, ""), &any).unwrap().tools().len(), 129, "{format}");
        }
    }
}

#[test]
fn ollama_offers_no_tools_where_none_may_be_called() {
    let options = |choice| EncodeOptions::default().with_settings(RequestSettings::new().tool_choice(choice));
    let none = offer(Format::Ollama, &tools(2, ""), &options(ToolChoice::None)).unwrap();
    assert!(none.body.is_empty() && none.losses.is_empty(), "{none:?}");
    for choice in [ToolChoice::Required, ToolChoice::Named("a__b0".to_owned())] {
        let options = options(choice);
        let refused = offer(Format::Ollama, &tools(2, ""), &options).unwrap_err();
        assert_eq!(refused.code(), "unsupported_tool_choice");
        let left_out = offer(Format::Ollama, &tools(2, ""), &options.with_leave_out_unsupported(true));
        let left_out = left_out.unwrap();
        assert_eq!((left_out.tools().len(), left_out.losses[0].path.as_str()), (2, "tool_choice"));
    }
}
