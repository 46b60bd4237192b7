//! Tools and messages in the shape of Chat Completions.

use serde_json::{Map, Value, json};

use crate::wire::encode::strict::Closing;
use crate::wire::encode::{Carries, CheckedTool, Dialect, Fields, Messages, PropertyNames, Vocabulary};
use crate::wire::formats::openai;
use crate::wire::formats::openai_chat::settings;
use crate::wire::history::Piece;
use crate::wire::{RequestSettings, ToolChoice};

/// Chat Completions, as a request is written.
pub(crate) struct Chat;

const CARRIES: Carries = Carries {
    refused_at_root: openai::REFUSED_AT_ROOT,
    property_names: PropertyNames::Any,
    closing: Some(Closing::Nullable),
    parallel: true,
    choice: true,
    allowed: true,
};

impl Dialect for Chat {
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
        let mut function = tool.object("parameters");
        if is_strict {
            function.insert("strict".to_owned(), true.into());
        }
        json!({ "type": "function", "function": function })
    }

    fn choice(&self, choice: &ToolChoice) -> Option<(&'static str, Value)> {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
            ToolChoice::Allowed { names, required } => {
                let tool = |name: &String| json!({ "type": "function", "function": { "name": name } });
                let tools: Vec<_> = names.iter().map(tool).collect();
                let mode = if *required { "required" } else { "auto" };
                json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
            }
        };
        Some(("tool_choice", choice))
    }

    fn parallel(&self, parallel: bool, body: &mut Map<String, Value>) {
        body.insert("parallel_tool_calls".to_owned(), parallel.into());
    }

    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        match piece {
            Piece::System(text) => out.push(json!({ "role": "system", "content": text })),
            Piece::User(text) => out.push(json!({ "role": "user", "content": text })),
            Piece::Assistant { text, answered } if answered.is_empty() => {
                out.push(json!({ "role": "assistant", "content": text }));
            }
            Piece::Assistant { text, answered } => {
                let content = if text.is_empty() { Value::Null } else { (*text).into() };
                let calls: Vec<Value> = answered
                    .iter()
                    .map(|(call, _)| {
                        let function = json!({ "name": call.name, "arguments": call.arguments() });
                        json!({ "id": call.id, "type": "function", "function": function })
                    })
                    .collect();
                out.push(json!({ "role": "assistant", "content": content, "tool_calls": calls }));
                out.extend(answered.iter().map(
                    |(call, result)| json!({ "role": "tool", "tool_call_id": call.id, "content": result.content }),
                ));
            }
        }
    }
}
