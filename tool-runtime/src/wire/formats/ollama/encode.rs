//! Tools and messages in the shape of Ollama's chat.

use serde_json::{Value, json};

use crate::wire::RequestSettings;
use crate::wire::encode::{Carries, CheckedTool, Dialect, Fields, Messages, PropertyNames, Vocabulary};
use crate::wire::formats::ollama::settings;
use crate::wire::history::Piece;

/// Ollama's chat, as a request is written. It has no choice but the model's own (E3).
pub(crate) struct Ollama;

const CARRIES: Carries = Carries {
    refused_at_root: &[],
    property_names: PropertyNames::Any,
    closing: None,
    parallel: false,
    choice: false,
    allowed: false,
};

impl Dialect for Ollama {
    fn carries(&self) -> &'static Carries {
        &CARRIES
    }

    fn vocabulary(&self) -> &'static Vocabulary {
        &settings::VOCABULARY
    }

    fn settings(&self, settings: &RequestSettings, out: &mut Fields) {
        settings::settings(settings, out);
    }

    fn tool(&self, tool: CheckedTool<'_>) -> Value {
        json!({ "type": "function", "function": tool.object("parameters") })
    }

    // The results of a turn follow its calls; the server matches them by order (M1).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        match piece {
            Piece::System(text) => out.push(json!({ "role": "system", "content": text })),
            Piece::User(text) => out.push(json!({ "role": "user", "content": text })),
            Piece::Assistant { text, answered } => {
                let mut message = json!({ "role": "assistant", "content": text });
                if !answered.is_empty() {
                    let calls: Vec<Value> = answered
                        .iter()
                        .map(|(call, _)| {
                            json!({ "function": { "name": call.name, "arguments": call.arguments_value() } })
                        })
                        .collect();
                    message["tool_calls"] = calls.into();
                }
                out.push(message);
                out.extend(answered.iter().map(
                    |(call, result)| json!({ "role": "tool", "tool_name": call.name, "content": result.content }),
                ));
            }
        }
    }
}
