//! Encodes tools and messages for Responses.

use serde_json::{Map, Value, json};

use crate::wire::ToolChoice;
use crate::wire::encode::{CheckedTool, Dialect, FormatFeatures, Messages, Node, Object, short_id};
use crate::wire::formats::openai;
use crate::wire::formats::openai_responses::replay::{Replay, is_custom_call};
use crate::wire::formats::openai_responses::{media, settings};
use crate::wire::history::{Content, Piece, joined};

/// The encoder of Responses.
pub(crate) struct Responses;

const FEATURES: FormatFeatures = openai::features(&settings::VOCABULARY, settings::settings);

impl Dialect for Responses {
    fn features(&self) -> &'static FormatFeatures {
        &FEATURES
    }

    fn answer(&self, name: &str, schema: Value, _with_tools: bool) -> Option<(&'static str, Value)> {
        let format = json!({ "type": "json_schema", "name": name, "schema": schema, "strict": true });
        Some(("text", json!({ "format": format })))
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

    // The results of a turn follow its calls, in their order (rule M1 of `wire`).
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        let written = |role: &'static str, content: Vec<Object<'a>>| {
            Object::of_type("message").with("role", role).with("content", content)
        };
        let message = |role: &'static str, content: Object<'a>| written(role, vec![content]);
        match piece {
            Piece::System(text) => out.push(message("system", Object::of_type("input_text").with("text", *text))),
            Piece::User(content) => {
                let text = |text| Object::of_type("input_text").with("text", Node::Text(text));
                let user = if content.iter().all(|one| one.as_text().is_some()) {
                    message("user", text(joined(content.iter().filter_map(Content::as_text)).into()))
                } else {
                    written("user", out.blocks_of(content, text, media::part))
                };
                out.push(user);
            }
            Piece::Assistant { parts, answered } => {
                Replay::new(out).turn(parts);
                for (call, result) in answered {
                    let custom = is_custom_call(out, call);
                    let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
                    let item = Object::of_type(kind).with("call_id", short_id(call));
                    let (text, parts) = out.result_of(result, media::part);
                    out.push(if parts.is_empty() {
                        item.with("output", text)
                    } else {
                        let text = (!text.trim().is_empty()).then(|| Object::of_type("input_text").with("text", text));
                        item.with("output", text.into_iter().chain(parts).collect::<Vec<_>>())
                    });
                }
            }
        }
    }
}
