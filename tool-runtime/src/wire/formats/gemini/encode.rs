//! Encodes tools and messages for Gemini.

use serde_json::{Value, json};

use crate::wire::ToolChoice;
use crate::wire::encode::{CheckedTool, Dialect, FormatFeatures, Messages, Node, Object, PropertyNames};
use crate::wire::formats::gemini::{media, settings, turn};
use crate::wire::history::Piece;

/// The encoder of Gemini.
pub(crate) struct Gemini;

const FEATURES: FormatFeatures = FormatFeatures {
    refused_at_root: &[],
    property_names: PropertyNames::Any,
    description: None,
    tools: Some(128),
    closing: None,
    parallel: false,
    choice: true,
    allowed: true,
    vocabulary: &settings::VOCABULARY,
    settings: settings::settings,
};

impl Dialect for Gemini {
    fn features(&self) -> &'static FormatFeatures {
        &FEATURES
    }

    // Models before Gemini 3 refuse a schema together with tools.
    fn answer(&self, _name: &str, schema: Value, with_tools: bool) -> Option<(&'static str, Value)> {
        let config = json!({ "responseMimeType": "application/json", "responseJsonSchema": schema });
        (!with_tools).then_some(("generationConfig", config))
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

    fn system<'a>(&self, texts: &[&'a str]) -> Option<(&'static str, Node<'a>)> {
        let parts: Vec<_> = texts.iter().map(|text| Object::new().with("text", *text)).collect();
        Some(("systemInstruction", Object::new().with("parts", parts).into()))
    }

    // The results of a turn come first in the next user content (rule M1 of `wire`).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        match piece {
            Piece::System(text) => out.system(text),
            Piece::User(content) => {
                for part in out.blocks_of(content, |text| Object::new().with("text", text), media::part) {
                    out.join("user", "parts", part);
                }
            }
            Piece::Assistant { parts, answered } => {
                turn::write(parts, out);
                let takes_media = media::reads_response_parts(out.model());
                let part = if takes_media { media::response_part } else { media::no_part };
                for (call, result) in answered {
                    let (text, parts) = out.result_of(result, part);
                    let key = if result.is_error { "error" } else { "output" };
                    let response = Object::new().with(key, text);
                    let response = turn::named(call).with("response", response);
                    let response = if parts.is_empty() { response } else { response.with("parts", parts) };
                    out.join("user", "parts", Object::new().with("functionResponse", response));
                }
            }
        }
    }
}
