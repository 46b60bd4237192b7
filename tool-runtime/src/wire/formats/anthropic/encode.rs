//! Tools and messages in the shape of Anthropic Messages.

use serde_json::{Map, Value, json};

use crate::wire::encode::{self, Checked, Dialect, EncodeError, EncodeOptions, Encoded, ToolChoice, WireTool};
use crate::wire::history::{Message, Piece, pieces};

const DIALECT: Dialect =
    Dialect { refused_at_root: &["oneOf", "anyOf", "allOf"], strict: false, parallel: true, choice: true };

/// The parts of a request body that offer the tools: `tools`, `tool_choice`.
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let checked = encode::check(tools, options, &DIALECT)?;
    let names = checked.names();
    let Checked { tools, choice, parallel, losses } = checked;
    let mut body = Map::new();
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.into_iter().map(|tool| tool.object("input_schema").into()).collect();
        body.insert("tools".to_owned(), tools.into());
    }
    let one_call = parallel == Some(false);
    // The limit to one call stands inside the choice, so it needs one.
    if let Some(choice) = choice.or(one_call.then_some(ToolChoice::Auto)) {
        let mut value = match &choice {
            ToolChoice::Auto => json!({ "type": "auto" }),
            ToolChoice::None => json!({ "type": "none" }),
            ToolChoice::Required => json!({ "type": "any" }),
            ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
        };
        if one_call && choice != ToolChoice::None {
            value["disable_parallel_tool_use"] = true.into();
        }
        body.insert("tool_choice".to_owned(), value);
    }
    Ok(Encoded { body, names, losses })
}

/// The history as `messages`, and `system` when there are instructions. M1: all results of a turn stand in one
/// user message, before any other block.
#[must_use]
pub(crate) fn encode_messages(history: &[Message]) -> Map<String, Value> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    // Roles alternate, so what follows in the same role joins the message before it.
    let mut add = |role: &'static str, block: Value| match turns.last_mut() {
        Some((last, blocks)) if *last == role => blocks.push(block),
        _ => turns.push((role, vec![block])),
    };
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => system.push(text),
            // Blank text blocks are refused.
            Piece::User(text) if text.trim().is_empty() => {}
            Piece::User(text) => add("user", json!({ "type": "text", "text": text })),
            Piece::Assistant { text, answered } => {
                if !text.trim().is_empty() {
                    add("assistant", json!({ "type": "text", "text": text }));
                }
                for (call, _) in &answered {
                    let input = call.arguments_value();
                    add("assistant", json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }));
                }
                for (call, result) in &answered {
                    let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": result.content });
                    if result.is_error {
                        block["is_error"] = true.into();
                    }
                    add("user", block);
                }
            }
        }
    }
    let messages: Vec<Value> =
        turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    let mut body = Map::from_iter([("messages".to_owned(), messages.into())]);
    if !system.is_empty() {
        body.insert("system".to_owned(), system.join("\n\n").into());
    }
    body
}
