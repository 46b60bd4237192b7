//! Tools and messages in the shape of Anthropic Messages.

use serde_json::{Map, Value, json};

use crate::wire::encode::strict::Closing;
use crate::wire::encode::{Carries, CheckedTool, Dialect, Fields, Messages, PropertyNames, Vocabulary};
use crate::wire::formats::anthropic::settings;
use crate::wire::history::Piece;
use crate::wire::{RequestSettings, ToolChoice};

/// Messages, as a request is written.
pub(crate) struct Anthropic;

const CARRIES: Carries = Carries {
    refused_at_root: &["oneOf", "anyOf", "allOf"],
    property_names: PropertyNames::Short,
    closing: Some(Closing::Optional),
    parallel: true,
    choice: true,
    allowed: false,
};

impl Dialect for Anthropic {
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
        let mut tool = tool.object("input_schema");
        if is_strict {
            tool.insert("strict".to_owned(), true.into());
        }
        tool.into()
    }

    fn choice(&self, choice: &ToolChoice) -> Option<(&'static str, Value)> {
        let choice = match choice {
            // A subset is what is offered.
            ToolChoice::Auto | ToolChoice::Allowed { required: false, .. } => json!({ "type": "auto" }),
            ToolChoice::None => json!({ "type": "none" }),
            ToolChoice::Required | ToolChoice::Allowed { .. } => json!({ "type": "any" }),
            ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
        };
        Some(("tool_choice", choice))
    }

    // The limit to one call is part of the choice, so it needs one.
    fn parallel(&self, parallel: bool, body: &mut Map<String, Value>) {
        if !parallel {
            let choice = body.entry("tool_choice").or_insert_with(|| json!({ "type": "auto" }));
            if choice["type"] != "none" {
                choice["disable_parallel_tool_use"] = true.into();
            }
        }
    }

    fn system(&self, texts: &[&str]) -> Option<(&'static str, Value)> {
        Some(("system", texts.join("\n\n").into()))
    }

    // All results of a turn are in one user message, before any other block (M1); blank text blocks are refused.
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        let mut add = |role: &str, block: Value| out.join(role, "content", block);
        match piece {
            Piece::System(text) => out.system(text),
            Piece::User(text) if text.trim().is_empty() => {}
            Piece::User(text) => add("user", json!({ "type": "text", "text": text })),
            Piece::Assistant { text, answered } => {
                if !text.trim().is_empty() {
                    add("assistant", json!({ "type": "text", "text": text }));
                }
                for (call, _) in answered {
                    let input = call.arguments_value();
                    add("assistant", json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }));
                }
                for (call, result) in answered {
                    let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": result.content });
                    if result.is_error {
                        block["is_error"] = true.into();
                    }
                    add("user", block);
                }
            }
        }
    }
}
