//! Encodes tools and messages for Chat Completions.

use serde_json::{Map, Value, json};

use crate::wire::ToolChoice;
use crate::wire::encode::{CheckedTool, Dialect, FormatFeatures, Messages, Node, Object, chat_id, plain_name};
use crate::wire::formats::openai;
use crate::wire::formats::openai_chat::replay::{Turn, is_legacy};
use crate::wire::formats::openai_chat::{media, settings};
use crate::wire::history::{Content, Piece, joined};

/// The encoder of Chat Completions.
pub(crate) struct Chat;

const FEATURES: FormatFeatures = openai::features(&settings::VOCABULARY, settings::settings);

impl Dialect for Chat {
    fn features(&self) -> &'static FormatFeatures {
        &FEATURES
    }

    fn answer(&self, name: &str, schema: Value, _with_tools: bool) -> Option<(&'static str, Value)> {
        let schema = json!({ "name": name, "schema": schema, "strict": true });
        Some(("response_format", json!({ "type": "json_schema", "json_schema": schema })))
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
        let message = |role: &'static str| Object::new().with("role", role);
        match piece {
            Piece::System(text) => out.push(message("system").with("content", *text)),
            Piece::User(content) => {
                let user = message("user");
                let message = if content.iter().all(|one| one.as_text().is_some()) {
                    user.with("content", joined(content.iter().filter_map(Content::as_text)))
                } else {
                    let text = |text| Object::of_type("text").with("text", Node::Text(text));
                    user.with("content", out.blocks_of(content, text, media::part))
                };
                out.push(message);
            }
            Piece::Assistant { parts, answered } => {
                Turn::write(parts, out);
                for (call, result) in answered {
                    // A tool message contains only text.
                    let (text, _) = out.result_of(result, |_| None);
                    out.push(if is_legacy(out, call, answered.len()) {
                        message("function").with("name", plain_name(call)).with("content", text)
                    } else {
                        message("tool").with("tool_call_id", chat_id(call)).with("content", text)
                    });
                }
            }
        }
    }
}
