//! Tools and messages in the shape of Responses.

use serde_json::{Map, Value, json};

use crate::wire::encode::strict::Closing;
use crate::wire::encode::{Carries, CheckedTool, Dialect, Fields, Messages, PropertyNames, Vocabulary};
use crate::wire::formats::openai;
use crate::wire::formats::openai_responses::settings;
use crate::wire::history::Piece;
use crate::wire::{RequestSettings, ToolChoice};

/// Responses, as a request is written.
pub(crate) struct Responses;

const CARRIES: Carries = Carries {
    refused_at_root: openai::REFUSED_AT_ROOT,
    property_names: PropertyNames::Any,
    closing: Some(Closing::Nullable),
    parallel: true,
    choice: true,
    allowed: true,
};

impl Dialect for Responses {
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
        let is_strict = tool.is_strict();
        let mut tool = tool.object("parameters");
        tool.insert("type".to_owned(), "function".into());
        // The provider's default is strict, so the key is always written.
        tool.insert("strict".to_owned(), is_strict.into());
        tool.into()
    }

    fn choice(&self, choice: &ToolChoice) -> Option<(&'static str, Value)> {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Named(name) => json!({ "type": "function", "name": name }),
            ToolChoice::Allowed { names, required } => {
                let tools: Vec<_> = names.iter().map(|name| json!({ "type": "function", "name": name })).collect();
                json!({ "type": "allowed_tools", "mode": if *required { "required" } else { "auto" }, "tools": tools })
            }
        };
        Some(("tool_choice", choice))
    }

    fn parallel(&self, parallel: bool, body: &mut Map<String, Value>) {
        body.insert("parallel_tool_calls".to_owned(), parallel.into());
    }

    fn messages_key(&self) -> &'static str {
        "input"
    }

    // The results of a turn follow its calls, in their order (M1).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        let message = |role: &str, content: Value| json!({ "type": "message", "role": role, "content": [content] });
        match piece {
            Piece::System(text) => out.push(message("system", json!({ "type": "input_text", "text": text }))),
            Piece::User(text) => out.push(message("user", json!({ "type": "input_text", "text": text }))),
            Piece::Assistant { text, answered } => {
                if !text.is_empty() {
                    let content = json!({ "type": "output_text", "text": text, "annotations": [] });
                    out.push(message("assistant", content));
                }
                out.extend(answered.iter().map(|(call, _)| {
                    let arguments = call.arguments();
                    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
                }));
                out.extend(answered.iter().map(|(call, result)| {
                    json!({ "type": "function_call_output", "call_id": call.id, "output": result.content })
                }));
            }
        }
    }
}
