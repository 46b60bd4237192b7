//! Encodes tools and messages for Anthropic Messages.

use serde_json::{Map, Value, json};

use crate::wire::ToolChoice;
use crate::wire::encode::strict::Closing;
use crate::wire::encode::{
    CheckedTool, Dialect, FormatFeatures, MARK, Messages, Node, Object, PropertyNames, plain_id,
};
use crate::wire::formats::anthropic::{media, settings, turn};
use crate::wire::history::Piece;

/// The encoder of Anthropic Messages.
pub(crate) struct Anthropic;

const FEATURES: FormatFeatures = FormatFeatures {
    refused_at_root: &["oneOf", "anyOf", "allOf"],
    property_names: PropertyNames::Short,
    description: None,
    tools: None,
    closing: Some(Closing::Optional),
    parallel: true,
    choice: true,
    allowed: false,
    vocabulary: &settings::VOCABULARY,
    settings: settings::settings,
};

impl Dialect for Anthropic {
    fn features(&self) -> &'static FormatFeatures {
        &FEATURES
    }

    fn answer(&self, _name: &str, schema: Value, _with_tools: bool) -> Option<(&'static str, Value)> {
        Some(("output_config", json!({ "format": { "type": "json_schema", "schema": schema } })))
    }

    fn tool_mark(&self) -> Option<(&'static str, Value)> {
        Some(("cache_control", json!({ "type": "ephemeral" })))
    }

    // The provider allows four marks: on the last tool, on the instructions, and on the last blocks of the user's last
    // two messages. It looks back 20 blocks from a mark, so the second-to-last mark finds the cache entry of the
    // previous turn.
    fn mark<'a>(&self, system: Option<&mut Node<'a>>, list: &mut [Object<'a>]) {
        if let Some(system) = system {
            let text = std::mem::replace(system, Node::Null);
            let block = Object::of_type("text").with("text", text).with("cache_control", Node::Raw(MARK.into()));
            *system = vec![block].into();
        }
        list.iter_mut().rev().filter_map(|message| message.last_block("user", "content")).take(2).for_each(|block| {
            block.add("cache_control", Node::Raw(MARK.into()));
        });
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
            // The list contains only the tools of the subset.
            ToolChoice::Auto | ToolChoice::Allowed { required: false, .. } => json!({ "type": "auto" }),
            ToolChoice::None => json!({ "type": "none" }),
            ToolChoice::Required | ToolChoice::Allowed { .. } => json!({ "type": "any" }),
            ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
        };
        Some(("tool_choice", choice))
    }

    // The limit to one call is a field of the tool choice, so the request needs a tool choice.
    fn parallel(&self, parallel: bool, body: &mut Map<String, Value>) {
        if !parallel {
            let choice = body.entry("tool_choice").or_insert_with(|| json!({ "type": "auto" }));
            if choice["type"] != "none" {
                choice["disable_parallel_tool_use"] = true.into();
            }
        }
    }

    fn system<'a>(&self, texts: &[&'a str]) -> Option<(&'static str, Node<'a>)> {
        Some(("system", texts.join("\n\n").into()))
    }

    // All results of a turn are in one user message, before any other block (rule M1 of `wire`). The provider refuses
    // blank text blocks.
    fn message<'a>(&self, piece: &Piece<'a>, out: &mut Messages<'a>) {
        match piece {
            Piece::System(text) => out.system(text),
            Piece::User(content) => {
                for block in out.blocks_of(content, |text| Object::of_type("text").with("text", text), media::block) {
                    out.join("user", "content", block);
                }
            }
            Piece::Assistant { parts, answered } => {
                turn::write(parts, out);
                for (call, result) in answered {
                    let block = Object::of_type("tool_result").with("tool_use_id", plain_id(call));
                    let (text, blocks) = out.result_of(result, media::block);
                    let block = if blocks.is_empty() {
                        block.with("content", text)
                    } else {
                        let text = (!text.trim().is_empty()).then(|| Object::of_type("text").with("text", text));
                        block.with("content", text.into_iter().chain(blocks).collect::<Vec<_>>())
                    };
                    out.join("user", "content", if result.is_error { block.with("is_error", true) } else { block });
                }
            }
        }
    }
}
