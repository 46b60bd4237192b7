//! [`DemoModel`]: a model with fixed rules, for the service without a real model and for its tests.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::agent::{DisplayFn, ModelClient, ModelError, ModelRequest};
use tool_runtime::media::Media;
use tool_runtime::wire::history::{Citation, Content, Part};
use tool_runtime::wire::{Decoded, DisplayEvent, FinishReason, Format, Message};

/// A model with fixed rules. It knows five messages: "find TEXT"; "order COUNT TEXT [to ADDRESS]", which orders each
/// part whose name contains the text; "where am I"; "plan", with an answer of reasoning, a source and an image; and
/// "break off". Except for "plan", it writes the bytes that an OpenAI-compatible server would stream, and decodes them
/// like those of a real server.
#[derive(Debug, Default)]
pub struct DemoModel;

#[async_trait]
impl ModelClient for DemoModel {
    fn name(&self) -> &'static str {
        "demo"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        if request.messages.last().is_some_and(|message| message.text() == "plan") {
            return Ok(plan(show));
        }
        let mut decoder = Format::OpenAiChat.decoder();
        for frame in answer(request.messages) {
            decoder.push_with(format!("data: {frame}\n\n").as_bytes(), &mut *show);
            // A real stream arrives in pieces, so the response leaves in pieces, too.
            tokio::task::yield_now().await;
        }
        Ok(decoder.finish())
    }
}

/// Returns the frames of the next turn, which depends on the user's last message and the results since.
fn answer(messages: &[Message]) -> Vec<Value> {
    let asked = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let (text, since) = asked.map_or((String::new(), &[][..]), |at| (messages[at].text(), &messages[at + 1..]));
    let text = text.trim();
    let results: Vec<_> = since.iter().filter_map(result).collect();
    let words: Vec<_> = text.split_whitespace().collect();
    match (words.as_slice(), results.as_slice()) {
        (["find", name @ ..] | ["order", _, name @ ..], []) => {
            let name = name.split(|word| *word == "to").next().unwrap_or_default();
            calls("stock__find", &[json!({ "text": name.join(" ") })])
        }
        (["find", ..], [found, ..]) => say(&format!("I found {found}.")),
        (["order", count, name @ ..], [found]) => {
            let count = count.parse().unwrap_or(1);
            let address = name.iter().position(|word| *word == "to").map(|at| name[at + 1..].join(" "));
            let order = |id| match &address {
                Some(address) => json!({ "part_id": id, "count": count, "ship_to": address }),
                None => json!({ "part_id": id, "count": count }),
            };
            let orders: Vec<_> = ids(found).map(order).collect();
            if orders.is_empty() { say("There is no such part.") } else { calls("stock__order", &orders) }
        }
        (["order", ..], [_, ordered @ ..]) => say(&format!("About the order: {}", ordered.join(" "))),
        (["where", ..], []) => calls("browser__locate", &[json!({ "reason": "To find the nearest store." })]),
        (["where", ..], [place, ..]) => say(&format!("You are here: {place}")),
        (["break", "off"], []) => say("It was").into_iter().take(1).collect(),
        _ => say(&format!("You said: {text}{}", sent(messages))),
    }
}

/// Describes the files in the last message.
fn sent(messages: &[Message]) -> String {
    let Some(Message::User(content)) = messages.last() else { return String::new() };
    let name = |content: &Content| match content {
        Content::Media(file) => Some(format!(" [{} {}]", file.media_type(), file.name().unwrap_or("a file"))),
        _ => None,
    };
    content.iter().filter_map(name).collect()
}

/// A PNG of one pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";

/// Answers with reasoning, text, a source and an image. Their wire format differs between providers, so the answer has
/// decoded parts.
fn plan(show: &mut DisplayFn<'_>) -> Decoded {
    let (reasoning, text) = ("The plan is in the manual.", "Here is the plan.");
    show(DisplayEvent::Reasoning(reasoning.into()));
    show(DisplayEvent::Text(text.into()));
    let mut source = Citation::default();
    (source.url, source.title) = (Some("https://example.org/manual".to_owned()), Some("Manual".to_owned()));
    let image = Media::base64("image/png", IMAGE).ok().map(Part::Media);
    let parts = vec![Part::reasoning(reasoning), Part::text(text), Part::Citation(source)];
    let parts: Vec<_> = parts.into_iter().chain(image).collect();
    Decoded::new(&parts, FinishReason::Stop)
}

fn result(message: &Message) -> Option<&str> {
    match message {
        Message::Result(result) => Some(&result.content),
        _ => None,
    }
}

/// Returns the ids of the parts in a result.
fn ids(found: &str) -> impl Iterator<Item = String> {
    #[derive(Deserialize)]
    struct Part {
        id: String,
    }
    let parts: Vec<Part> = serde_json::from_str(found).unwrap_or_default();
    parts.into_iter().map(|part| part.id)
}

/// Returns the frames of a text.
fn say(text: &str) -> Vec<Value> {
    let delta = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] });
    let mut frames: Vec<_> = text.split_inclusive(' ').map(delta).collect();
    frames.push(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
    frames
}

/// Returns the frames of calls of one tool. They have no ids, so the decoder generates them.
fn calls(name: &str, arguments: &[Value]) -> Vec<Value> {
    let function = |arguments: &Value| json!({ "name": name, "arguments": arguments.to_string() });
    let call = |(index, arguments)| json!({ "index": index, "function": function(arguments) });
    let calls: Vec<_> = arguments.iter().enumerate().map(call).collect();
    vec![
        json!({ "choices": [{ "delta": { "tool_calls": calls } }] }),
        json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
    ]
}
