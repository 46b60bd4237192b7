//! Tools and messages in the shape of Gemini.

use serde_json::{Value, json};

use crate::wire::encode::{Carries, CheckedTool, Dialect, Fields, Messages, PropertyNames, Vocabulary};
use crate::wire::formats::gemini::settings;
use crate::wire::history::Piece;
use crate::wire::{RequestSettings, ToolChoice};

/// Gemini, as a request is written.
pub(crate) struct Gemini;

const CARRIES: Carries = Carries {
    refused_at_root: &[],
    property_names: PropertyNames::Any,
    closing: None,
    parallel: false,
    choice: true,
    allowed: true,
};

impl Dialect for Gemini {
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
        tool.object("parametersJsonSchema").into()
    }

    fn tools(&self, tools: Vec<Value>) -> Value {
        json!([{ "functionDeclarations": tools }])
    }

    fn choice(&self, choice: &ToolChoice) -> Option<(&'static str, Value)> {
        let calling = match choice {
            ToolChoice::Auto => json!({ "mode": "AUTO" }),
            ToolChoice::None => json!({ "mode": "NONE" }),
            ToolChoice::Required => json!({ "mode": "ANY" }),
            ToolChoice::Named(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
            ToolChoice::Allowed { names, required } => {
                json!({ "mode": if *required { "ANY" } else { "VALIDATED" }, "allowedFunctionNames": names })
            }
        };
        Some(("toolConfig", json!({ "functionCallingConfig": calling })))
    }

    fn messages_key(&self) -> &'static str {
        "contents"
    }

    fn system(&self, texts: &[&str]) -> Option<(&'static str, Value)> {
        let parts: Vec<_> = texts.iter().map(|text| json!({ "text": text })).collect();
        Some(("systemInstruction", json!({ "parts": parts })))
    }

    // The results of a turn are in the next user content, before anything else (M1).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        let mut add = |role: &str, part: Value| out.join(role, "parts", part);
        match piece {
            Piece::System(text) => out.system(text),
            Piece::User("") => {}
            Piece::User(text) => add("user", json!({ "text": text })),
            Piece::Assistant { text, answered } => {
                if !text.is_empty() {
                    add("model", json!({ "text": text }));
                }
                for (call, _) in answered {
                    let args = call.arguments_value();
                    add("model", json!({ "functionCall": { "id": call.id, "name": call.name, "args": args } }));
                }
                for (call, result) in answered {
                    let key = if result.is_error { "error" } else { "output" };
                    let response = json!({ key: result.content });
                    add(
                        "user",
                        json!({ "functionResponse": { "id": call.id, "name": call.name, "response": response } }),
                    );
                }
            }
        }
    }
}
