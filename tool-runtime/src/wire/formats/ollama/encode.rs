//! Tools and messages in the shape of Ollama's chat.

use serde_json::{Map, Value, json};

use crate::wire::encode::{self, Checked, Dialect, EncodeError, EncodeOptions, Encoded, WireTool};
use crate::wire::history::{Message, Piece, pieces};

const DIALECT: Dialect = Dialect { refused_at_root: &[], strict: false, parallel: false, choice: false };

/// The part of a request body that offers the tools: `tools`. E3: there is no choice but the model's own.
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let checked = encode::check(tools, options, &DIALECT)?;
    let names = checked.names();
    let Checked { tools, losses, .. } = checked;
    let tools: Vec<Value> =
        tools.into_iter().map(|tool| json!({ "type": "function", "function": tool.object("parameters") })).collect();
    let mut body = Map::new();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    Ok(Encoded { body, names, losses })
}

/// The history as `messages`. M1: the results of a turn follow its calls; this format matches them by order.
#[must_use]
pub(crate) fn encode_messages(history: &[Message]) -> Map<String, Value> {
    let mut messages = Vec::new();
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => messages.push(json!({ "role": "system", "content": text })),
            Piece::User(text) => messages.push(json!({ "role": "user", "content": text })),
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
                messages.push(message);
                messages.extend(answered.iter().map(
                    |(call, result)| json!({ "role": "tool", "tool_name": call.name, "content": result.content }),
                ));
            }
        }
    }
    Map::from_iter([("messages".to_owned(), messages.into())])
}
