//! Tools and messages in the shape of Ollama's chat.

use serde_json::{Value, json};

use crate::wire::encode::{Carries, CheckedTool, Dialect, Messages, Node, Object, PropertyNames};
use crate::wire::formats::ollama::{media, settings};
use crate::wire::history::{Part, Piece, joined};

/// Ollama's chat, as a request is written. It has no choice but the model's own (E3).
pub(crate) struct Ollama;

const CARRIES: Carries = Carries {
    refused_at_root: &[],
    property_names: PropertyNames::Any,
    closing: None,
    parallel: false,
    choice: false,
    allowed: false,
    vocabulary: &settings::VOCABULARY,
    settings: settings::settings,
};

impl Dialect for Ollama {
    fn carries(&self) -> &'static Carries {
        &CARRIES
    }

    // With a format the server lets the model write nothing but the answer, no call either.
    fn answer(&self, _name: &str, schema: Value, with_tools: bool) -> Option<(&'static str, Value)> {
        (!with_tools).then_some(("format", schema))
    }

    fn tool(&self, tool: CheckedTool<'_>) -> Value {
        json!({ "type": "function", "function": tool.object("parameters") })
    }

    // The results of a turn follow its calls; the server matches them by order (M1).
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
                let (mut calls, mut thinking) = (Vec::new(), String::new());
                for part in parts {
                    match part {
                        Part::Text(_) | Part::Refusal(_) => {}
                        Part::Call(call) => {
                            let arguments = Node::Raw(call.arguments().into());
                            let function = Object::new().with("name", &*call.name).with("arguments", arguments);
                            let carried = out.replay(call.carried());
                            calls.push(Object::new().with("function", function).with_carried(carried));
                        }
                        Part::Reasoning(reasoning) if out.fits(reasoning.carried()).is_some() => {
                            thinking.push_str(reasoning.text());
                        }
                        part => out.lose_part(part),
                    }
                }
                let turn = message("assistant").with("content", joined(parts.iter().filter_map(|part| part.as_text())));
                let turn = if thinking.is_empty() { turn } else { turn.with("thinking", thinking) };
                out.push(if calls.is_empty() { turn } else { turn.with("tool_calls", calls) });
                for (call, result) in answered {
                    // A tool's message carries text only.
                    let (text, _) = out.result_of(result, |_| None);
                    out.push(message("tool").with("tool_name", &*call.name).with("content", text));
                }
            }
        }
    }
}
