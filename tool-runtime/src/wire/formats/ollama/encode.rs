//! Encodes tools and messages for Ollama's chat.

use serde_json::{Value, json};

use crate::wire::decode::fields::{Raw, Text, read, shape};
use crate::wire::encode::{CheckedTool, Dialect, FormatFeatures, Messages, Node, Object, PropertyNames};
use crate::wire::formats::ollama::{media, settings};
use crate::wire::history::{CallMessage, Part, Piece, joined};

/// The encoder of Ollama's chat. The format has no tool choice (rule E3 of `wire`).
pub(crate) struct Ollama;

const FEATURES: FormatFeatures = FormatFeatures {
    refused_at_root: &[],
    property_names: PropertyNames::Any,
    description: None,
    tools: None,
    closing: None,
    parallel: false,
    choice: false,
    allowed: false,
    vocabulary: &settings::VOCABULARY,
    settings: settings::settings,
};

impl Dialect for Ollama {
    fn features(&self) -> &'static FormatFeatures {
        &FEATURES
    }

    // With `format` set, the server makes the model write only the answer, without calls.
    fn answer(&self, _name: &str, schema: Value, with_tools: bool) -> Option<(&'static str, Value)> {
        (!with_tools).then_some(("format", schema))
    }

    fn tool(&self, tool: CheckedTool<'_>) -> Value {
        json!({ "type": "function", "function": tool.object("parameters") })
    }

    // The results of a turn follow its calls, and the server matches them by order (M1).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        let message = |role: &'static str| Object::new().with("role", role);
        match piece {
            Piece::System(text) => out.push(message("system").with("content", *text)),
            Piece::User(content) => {
                let (text, images) = media::user(content, out);
                let turn = message("user").with("content", text);
                out.push(if images.is_empty() { turn } else { turn.with("images", images) });
            }
            Piece::Assistant { parts, answered } => {
                turn(parts, out);
                for (call, result) in answered {
                    // A tool message contains only text.
                    let (text, _) = out.result_of(result, |_| None);
                    let answer = message("tool").with("tool_name", &*call.name);
                    // If the server gave the call an id, it finds the call by that id.
                    let given = kept(call, out).and_then(|kept| read::<Ids<'_>>(kept.call.0?).ok());
                    let answer = match given.filter(|given| given.id.came()) {
                        Some(given) => answer.with("tool_call_id", given.id.get().to_owned()),
                        None => answer,
                    };
                    out.push(answer.with("content", text));
                }
            }
        }
    }
}

shape! {
    /// The provider state of a call or of the message.
    struct ProviderData<'a> {
        "call" => call: Raw<'a>,
        "function" => function: Raw<'a>,
        "message" => message: Raw<'a>,
    }
}

shape! {
    struct Ids<'a> {
        "id" => id: Text<'a>,
    }
}

fn kept<'a>(call: &'a CallMessage, out: &Messages<'_>) -> Option<ProviderData<'a>> {
    let provider_state = call.provider_state().filter(|provider_state| out.takes(provider_state))?;
    read(provider_state.json()).ok()
}

/// Writes the message of a turn, unless it is empty.
fn turn<'a>(parts: &[&'a Part], out: &mut Messages<'a>) {
    let (mut calls, mut images, mut thinking, mut members) = (Vec::new(), Vec::new(), String::new(), None);
    for part in parts {
        match part {
            Part::Text { provider_state, .. } => {
                out.replay(provider_state.as_ref());
            }
            Part::Refusal(_) => {}
            Part::Call(call) => {
                out.replay(call.provider_state());
                let kept = kept(call, out).unwrap_or_default();
                let arguments = Node::Raw(out.arguments_of(call).into());
                let function = Object::new().with("name", &*call.name).with("arguments", arguments);
                let function = function.with_provider_state(kept.function.0);
                calls.push(Object::new().with("function", function).with_provider_state(kept.call.0));
            }
            Part::Reasoning { text, provider_state } if out.fits(provider_state.as_ref()).is_some() => {
                thinking.push_str(text);
            }
            Part::ProviderState(provider_state) if out.takes(provider_state) => {
                members = read::<ProviderData<'_>>(provider_state.json()).ok().and_then(|kept| kept.message.0);
            }
            Part::Media(media) => match media.data().filter(|_| media.essence().starts_with("image/")) {
                Some(data) => images.push(data),
                None => out.lose_part(part),
            },
            part => out.lose_part(part),
        }
    }
    let text = joined(parts.iter().filter_map(|part| part.as_text()));
    if text.is_empty() && calls.is_empty() && images.is_empty() {
        if !thinking.is_empty() {
            out.lose("reasoning without an answer");
        }
        return;
    }
    let mut message = Object::new().with("role", "assistant").with("content", text);
    if !thinking.is_empty() {
        message = message.with("thinking", thinking);
    }
    if !images.is_empty() {
        message = message.with("images", images);
    }
    let message = if calls.is_empty() { message } else { message.with("tool_calls", calls) };
    out.push(message.with_provider_state(members));
}
