//! Tools and messages in the shape of Gemini.

use serde_json::{Map, Value, json};

use crate::wire::encode::{self, Checked, Dialect, EncodeError, EncodeOptions, Encoded, ToolChoice, WireTool};
use crate::wire::history::{Message, Piece, pieces};

const DIALECT: Dialect = Dialect { refused_at_root: &[], strict: false, parallel: false, choice: true };

/// The parts of a request body that offer the tools: `tools`, `toolConfig`.
pub(crate) fn encode_tools<'a, T: Into<WireTool<'a>>>(
    tools: impl IntoIterator<Item = T>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let checked = encode::check(tools, options, &DIALECT)?;
    let names = checked.names();
    let Checked { tools, choice, losses, .. } = checked;
    let mut body = Map::new();
    if !tools.is_empty() {
        let declarations: Vec<Value> =
            tools.into_iter().map(|tool| tool.object("parametersJsonSchema").into()).collect();
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
    }
    if let Some(choice) = choice {
        let calling = match choice {
            ToolChoice::Auto => json!({ "mode": "AUTO" }),
            ToolChoice::None => json!({ "mode": "NONE" }),
            ToolChoice::Required => json!({ "mode": "ANY" }),
            ToolChoice::Named(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
        };
        body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": calling }));
    }
    Ok(Encoded { body, names, losses })
}

/// The history as `contents`, and `systemInstruction` when there are instructions. M1: the results of a turn
/// stand in the next user content, before anything else.
#[must_use]
pub(crate) fn encode_messages(history: &[Message]) -> Map<String, Value> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut add = |role: &'static str, part: Value| match turns.last_mut() {
        Some((last, parts)) if *last == role => parts.push(part),
        _ => turns.push((role, vec![part])),
    };
    for piece in pieces(history) {
        match piece {
            Piece::System(text) => system.push(json!({ "text": text })),
            Piece::User("") => {}
            Piece::User(text) => add("user", json!({ "text": text })),
            Piece::Assistant { text, answered } => {
                if !text.is_empty() {
                    add("model", json!({ "text": text }));
                }
                for (call, _) in &answered {
                    let args = call.arguments_value();
                    add("model", json!({ "functionCall": { "id": call.id, "name": call.name, "args": args } }));
                }
                for (call, result) in &answered {
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
    let contents: Vec<Value> = turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect();
    let mut body = Map::from_iter([("contents".to_owned(), contents.into())]);
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({ "parts": system }));
    }
    body
}
