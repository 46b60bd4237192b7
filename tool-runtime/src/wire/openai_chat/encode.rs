//! The encoder: tools, choice, and turns with their results.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::history::Answer;
use crate::wire::strict;
use crate::wire::tools::{self, EncodeError, EncodeOptions, Encoded, ToolChoice, WireTool};

/// Encodes tools into request parts: `tools`, `tool_choice`, `parallel_tool_calls`.
///
/// # Errors
/// An illegal or duplicate name, a schema that is no object's or cannot be closed, a choice of no offered tool.
pub fn encode_tools(
    tools: impl IntoIterator<Item = WireTool>,
    options: &EncodeOptions,
) -> Result<Encoded, EncodeError> {
    let tools: Vec<_> = tools.into_iter().collect();
    let names = tools::check(&tools)?;
    if let Some(ToolChoice::Named(name)) = &options.choice
        && !names.contains_key(name)
    {
        return Err(EncodeError::of("unknown_tool_choice", name, None));
    }
    let mut body = Map::new();
    // E2: no tools, no choice.
    if tools.is_empty() {
        return Ok(Encoded { body: body.into(), names });
    }
    let list = tools.into_iter().map(|tool| function(tool, options.strict)).collect::<Result<Vec<_>, _>>()?;
    body.insert("tools".into(), list.into());
    if let Some(choice) = &options.choice {
        body.insert("tool_choice".into(), encode_choice(choice));
    }
    if let Some(parallel) = options.parallel {
        body.insert("parallel_tool_calls".into(), parallel.into());
    }
    Ok(Encoded { body: body.into(), names })
}

fn function(tool: WireTool, is_strict: bool) -> Result<Value, EncodeError> {
    let mut function = Map::new();
    let parameters = if is_strict { strict::close(&tool.name, &tool.input_schema)? } else { tool.input_schema };
    function.insert("name".into(), tool.name.into());
    // E1: an empty description is left out.
    if !tool.description.is_empty() {
        function.insert("description".into(), tool.description.into());
    }
    function.insert("parameters".into(), parameters);
    if is_strict {
        function.insert("strict".into(), true.into());
    }
    Ok(json!({"type": "function", "function": function}))
}

fn encode_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

/// Encodes a turn and its results into messages (M1): the assistant's with all calls, then one result each, in order.
pub fn encode_results<'a>(text: &str, answers: impl IntoIterator<Item = Answer<'a>>) -> Value {
    let calls = answers.into_iter().map(|answer| CallInput {
        id: answer.call.id.to_string(),
        name: answer.call.name.clone(),
        arguments: serde_json::from_str(answer.call.arguments.as_str()).ok().filter(Value::is_object),
        content: answer.content,
    });
    let turn = TurnInput { text: Some(text.to_owned()), calls: calls.collect(), user_text_after: None };
    encode_turn(&turn)["messages"].take()
}

/// Tools in this project's terms, as `wire encode --kind request` reads them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RequestInput {
    /// The tools.
    pub tools: Vec<ToolInput>,
    /// `"auto"`, `"none"`, `"required"` or `{"name": ..}`
    #[serde(default)]
    pub tool_choice: Option<Value>,
    /// Several calls at once.
    #[serde(default)]
    pub parallel: Option<bool>,
    /// Close the schemas.
    #[serde(default)]
    pub strict: bool,
}

/// One tool of a [`RequestInput`].
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct ToolInput {
    /// The name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The schema of its arguments.
    pub input_schema: Value,
}

/// Encodes a [`RequestInput`].
///
/// # Errors
/// As [`encode_tools`], and a choice that says nothing known.
pub fn encode_request(request: &RequestInput) -> Result<Encoded, EncodeError> {
    let choice = match &request.tool_choice {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) => Some(match word.as_str() {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            _ => return Err(EncodeError { kind: "unsupported_tool_choice", tool: None, path: None }),
        }),
        Some(choice) => match choice.get("name").and_then(Value::as_str) {
            Some(name) => Some(ToolChoice::Named(name.to_owned())),
            None => return Err(EncodeError { kind: "unsupported_tool_choice", tool: None, path: None }),
        },
    };
    let tools = request
        .tools
        .iter()
        .map(|tool| WireTool::new(tool.name.clone(), tool.description.clone(), tool.input_schema.clone()));
    encode_tools(tools, &EncodeOptions { choice, parallel: request.parallel, strict: request.strict })
}

/// A turn with its results, as `wire encode --kind result` reads it.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct TurnInput {
    /// The assistant's text.
    #[serde(default)]
    pub text: Option<String>,
    /// The calls, each with its result.
    pub calls: Vec<CallInput>,
    /// What the user writes next.
    #[serde(default)]
    pub user_text_after: Option<String>,
}

/// One call of a [`TurnInput`].
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct CallInput {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; nothing when they did not parse.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// The result as the model reads it.
    pub content: String,
}

/// Encodes a [`TurnInput`]: `{"messages": [..]}`.
#[must_use]
pub fn encode_turn(turn: &TurnInput) -> Value {
    let text = turn.text.as_deref().filter(|text| !text.is_empty());
    let mut messages = Vec::new();
    let mut assistant = Map::new();
    assistant.insert("role".into(), "assistant".into());
    assistant.insert("content".into(), text.into());
    if !turn.calls.is_empty() {
        let calls: Vec<_> = turn.calls.iter().map(encode_call).collect();
        assistant.insert("tool_calls".into(), calls.into());
    }
    messages.push(Value::from(assistant));
    messages.extend(
        turn.calls.iter().map(|call| json!({"role": "tool", "tool_call_id": call.id, "content": call.content})),
    );
    messages.extend(turn.user_text_after.iter().map(|text| json!({"role": "user", "content": text})));
    json!({ "messages": messages })
}

fn encode_call(call: &CallInput) -> Value {
    // M1: arguments that did not parse are echoed as `{}`.
    let arguments = call.arguments.as_ref().filter(|arguments| arguments.is_object());
    let arguments = arguments.map_or_else(|| "{}".to_owned(), ToString::to_string);
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// What a strict model sent, and the schema it was not sent.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct StrictNullInput {
    /// The authoritative schema.
    pub input_schema: Value,
    /// The arguments.
    pub arguments: Value,
}

/// T3 for `wire encode --kind strict-null`: `{"arguments": ..}` to validate.
#[must_use]
pub fn strip_strict_nulls(input: &StrictNullInput) -> Value {
    let mut arguments = input.arguments.clone();
    strict::strip_nulls(&input.input_schema, &mut arguments);
    json!({ "arguments": arguments })
}
