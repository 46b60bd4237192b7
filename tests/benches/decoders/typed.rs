//! Types for the frames, as in a reader that trusts the server: they borrow the fields that the decoders use, and skip
//! the rest.

#![allow(dead_code, reason = "reading the fields is the work; nothing looks at them")]

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tool_runtime::call::CallId;
use tool_runtime::wire::Format;

/// Reads each frame, and returns how many could be read.
pub(crate) fn read(format: Format, frames: &[&str]) -> usize {
    match format {
        Format::OpenAiChat => count::<Chat<'_>>(frames),
        Format::OpenAiResponses => count::<Responses<'_>>(frames),
        Format::Anthropic => count::<Anthropic<'_>>(frames),
        Format::Ollama => count::<Ollama<'_>>(frames),
        _ => count::<Gemini<'_>>(frames),
    }
}

/// Reads lines of Ollama, and keeps the parts of each call that have to outlive its line: the name, the arguments, and
/// an id, which the server does not send. Returns how many calls there were.
pub(crate) fn keep(lines: &[&str]) -> usize {
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Ollama<'_>>(line).ok());
    let calls = lines.flat_map(|line| line.message.tool_calls);
    let kept = |OllamaCall { function }| -> (CallId, String, Arc<str>) {
        (CallId::generate(), function.name.to_owned(), function.arguments.get().into())
    };
    black_box(calls.map(kept).collect::<Vec<_>>()).len()
}

fn count<'a, T: Deserialize<'a>>(frames: &[&'a str]) -> usize {
    frames.iter().filter(|frame| black_box(serde_json::from_str::<T>(frame)).is_ok()).count()
}

/// A newtype, because serde borrows into a `Cow` only where a field is one itself.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Chat<'a> {
    id: &'a str,
    model: &'a str,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: u32,
    #[serde(borrow)]
    delta: ChatDelta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    index: u32,
    id: Option<&'a str>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Responses<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    output_index: Option<u32>,
    content_index: Option<u32>,
    item_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Anthropic<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    stop_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Ollama<'a> {
    model: &'a str,
    #[serde(borrow)]
    message: Message<'a>,
    done: bool,
    done_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_calls: Vec<OllamaCall<'a>>,
}

#[derive(Deserialize)]
struct OllamaCall<'a> {
    #[serde(borrow)]
    function: OllamaFunction<'a>,
}

#[derive(Deserialize)]
struct OllamaFunction<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Gemini<'a> {
    #[serde(borrow)]
    candidates: Vec<Candidate<'a>>,
    usage_metadata: Tokens,
    model_version: &'a str,
    response_id: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: u32,
    #[serde(borrow)]
    content: GeminiContent<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<&'a str>,
    #[serde(borrow)]
    function_call: Option<GeminiCall<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCall<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    partial_args: Vec<PartialArg<'a>>,
    #[serde(default)]
    will_continue: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialArg<'a> {
    json_path: &'a str,
    #[serde(borrow)]
    string_value: Option<Text<'a>>,
    #[serde(default)]
    will_continue: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: u64,
    candidates_token_count: u64,
}
