//! Tools and messages in the shape of Responses.

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
            let mut tool = tool.object("parameters");
            tool.insert("type".to_owned(), "function".into());
            // This format is strict when nothing is said, so it is always said.
            tool.insert("strict".to_owned(), options.strict.into());
            tool.into()
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
            ToolChoice::Named(name) => json!({ "type": "function", "name": name }),
        };
        body.insert("tool_choice".to_owned(), choice);
    }
    if let Some(parallel) = parallel {
        body.insert("parallel_tool_calls".to_owned(), parallel.into());
    }
    Ok(Encoded { body, names, losses })
}

/// The history as `input` items. M1: the results of a turn follow its calls, in their order.
#[must_use]
pub(crate) fn encode_messages(history: &[Message]) -> Map<String, Value> {
    let mut input = Vec::new();
    let message = |role: &str, content: Value| json!({ "type": "message", "role": role, "content": [content] });
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => input.push(message("system", json!({ "type": "input_text", "text": text }))),
            Piece::User(text) => input.push(message("user", json!({ "type": "input_text", "text": text }))),
            Piece::Assistant { text, answered } => {
                if !text.is_empty() {
                    let content = json!({ "type": "output_text", "text": text, "annotations": [] });
                    input.push(message("assistant", content));
                }
                input.extend(answered.iter().map(|(call, _)| {
                    let arguments = call.arguments();
                    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
                }));
                input.extend(answered.iter().map(|(call, result)| {
                    json!({ "type": "function_call_output", "call_id": call.id, "output": result.content })
                }));
            }
        }
    }
    Map::from_iter([("input".to_owned(), input.into())])
}
