//! Tools and messages in the shape of Chat Completions.

use serde_json::{Map, Value, json};

use crate::wire::encode::{self, Checked, Dialect, EncodeError, EncodeOptions, Encoded, ToolChoice, WireTool};
use crate::wire::history::{Message, Piece, pieces};

const DIALECT: Dialect = Dialect {
    refused_at_root: &["oneOf", "anyOf", "allOf", "enum", "not"],
    strict: true,
    parallel: true,
    choice: true,
};

/// The parts of a request body that offer the tools: `tools`, `tool_choice`, `parallel_tool_calls`.
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let checked = encode::check(tools, options, &DIALECT)?;
    let names = checked.names();
    let Checked { tools, choice, parallel, losses } = checked;
    let mut body = Map::new();
    let tools: Vec<Value> = tools
        .into_iter()
        .map(|tool| {
            let mut function = tool.object("parameters");
            if options.strict {
                function.insert("strict".to_owned(), true.into());
            }
            json!({ "type": "function", "function": function })
        })
        .collect();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    if let Some(choice) = choice {
        let choice = match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::None => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
        };
        body.insert("tool_choice".to_owned(), choice);
    }
    if let Some(parallel) = parallel {
        body.insert("parallel_tool_calls".to_owned(), parallel.into());
    }
    Ok(Encoded { body, names, losses })
}

/// The history as `messages`. M1: each call has its one result directly after the assistant's message.
#[must_use]
pub(crate) fn encode_messages(history: &[Message]) -> Map<String, Value> {
    let mut messages = Vec::new();
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => messages.push(json!({ "role": "system", "content": text })),
            Piece::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Piece::Assistant { text, answered } if answered.is_empty() => {
                messages.push(json!({ "role": "assistant", "content": text }));
            }
            Piece::Assistant { text, answered } => {
                let content = if text.is_empty() { Value::Null } else { text.into() };
                let calls: Vec<Value> = answered
                    .iter()
                    .map(|(call, _)| {
                        let function = json!({ "name": call.name, "arguments": call.arguments() });
                        json!({ "id": call.id, "type": "function", "function": function })
                    })
                    .collect();
                messages.push(json!({ "role": "assistant", "content": content, "tool_calls": calls }));
                messages.extend(answered.iter().map(
                    |(call, result)| json!({ "role": "tool", "tool_call_id": call.id, "content": result.content }),
                ));
            }
        }
    }
    Map::from_iter([("messages".to_owned(), messages.into())])
}
