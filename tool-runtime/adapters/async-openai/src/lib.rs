//! The tools, calls and results of [tool-runtime](https://docs.rs/tool-runtime) in the types of
//! [async-openai](https://docs.rs/async-openai).
//!
//! async-openai keeps the requests and the history. The [`Run`] decides, runs, redacts and records each call.
//!
//! | | Chat Completions | Responses |
//! | --- | --- | --- |
//! | offers the tools of a [`Run`] | [`chat_tools`] | [`response_tools`] |
//! | reads a response | [`decode_chat`] | [`decode_response`] |
//! | returns a result | [`chat_message`] | [`response_item`] |
//!
//! ```
//! use async_openai::types::chat::{ChatCompletionRequestMessage, CreateChatCompletionRequest, CreateChatCompletionResponse};
//! use tool_runtime::Run;
//! use tool_runtime::wire::EncodeError;
//! use tool_runtime_async_openai::{chat_message, chat_tools, decode_chat};
//!
//! /// Offers the run's tools.
//! fn offer(run: &Run, request: &mut CreateChatCompletionRequest) -> Result<(), EncodeError> {
//!     request.tools = Some(chat_tools(run)?);
//!     Ok(())
//! }
//!
//! /// Runs the calls of a response through the gate, and returns the messages with their results.
//! async fn answers(run: &Run, response: &CreateChatCompletionResponse) -> Vec<ChatCompletionRequestMessage> {
//!     let mut answers = Vec::new();
//!     for decoded in decode_chat(response).calls {
//!         answers.push(chat_message(&run.exec(decoded.call).await));
//!     }
//!     answers
//! }
//! # let _ = (offer, answers);
//! ```

use async_openai::types::chat::{
    ChatCompletionRequestMessage, ChatCompletionRequestToolMessage, ChatCompletionRequestToolMessageContent,
    ChatCompletionTools, CreateChatCompletionResponse,
};
use async_openai::types::responses::{
    FunctionCallOutput, FunctionCallOutputItemParam, InputItem, Item, Response, Tool,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, EncodeError, EncodeOptions, Format, Message};
use tool_runtime::{Run, ToolExecResult, ToolSpec};

/// Returns the definitions of the tools that the run may use, for Chat Completions.
///
/// # Errors
/// A tool has a name or a schema that the format, or the types of `async-openai`, cannot express.
pub fn chat_tools(run: &Run) -> Result<Vec<ChatCompletionTools>, EncodeError> {
    tools(Format::OpenAiChat, run)
}

/// Returns the definitions of the tools that the run may use, for Responses.
///
/// # Errors
/// A tool has a name or a schema that the format, or the types of `async-openai`, cannot express.
pub fn response_tools(run: &Run) -> Result<Vec<Tool>, EncodeError> {
    tools(Format::OpenAiResponses, run)
}

/// Decodes a response of Chat Completions with tool-runtime's decoder. The gate refuses the calls of a response that
/// was cut or filtered.
#[must_use]
pub fn decode_chat(response: &CreateChatCompletionResponse) -> Decoded {
    decoded(Format::OpenAiChat, response)
}

/// Decodes a response of Responses with tool-runtime's decoder. The gate refuses the calls of a response that was cut
/// or filtered.
#[must_use]
pub fn decode_response(response: &Response) -> Decoded {
    decoded(Format::OpenAiResponses, response)
}

/// Returns the message with the result of a call. Such a message contains only text, so a file appears as text or is
/// described in a sentence.
#[must_use]
pub fn chat_message(result: &ToolExecResult) -> ChatCompletionRequestMessage {
    ChatCompletionRequestMessage::Tool(ChatCompletionRequestToolMessage {
        content: ChatCompletionRequestToolMessageContent::Text(result.to_model_text()),
        tool_call_id: result.call_id().as_str().to_owned(),
    })
}

/// Returns the item with the result of a call, including its images and files. If the types of `async-openai` cannot
/// express the result, the item contains it as text.
#[must_use]
pub fn response_item(result: &ToolExecResult) -> InputItem {
    InputItem::Item(Item::FunctionCallOutput(FunctionCallOutputItemParam {
        call_id: Some(result.call_id().as_str().to_owned()),
        output: output(result).unwrap_or_else(|| FunctionCallOutput::Text(result.to_model_text())),
        id: None,
        status: None,
        name: None,
        namespace: None,
        caller: None,
    }))
}

/// Converts the encoder's output; `None` if the types of `async-openai` cannot express it.
fn output(result: &ToolExecResult) -> Option<FunctionCallOutput> {
    let call = Part::Call(CallMessage::new(result.call_id().clone(), "tool", "{}"));
    let history = [Message::Assistant(vec![call]), Message::Result(result.into())];
    let body = Format::OpenAiResponses.encode_messages(&history, None).body;
    let mut items: Vec<Value> = serde_json::from_str(body.get("input")?.get()).ok()?;
    serde_json::from_value(items.pop()?.get_mut("output")?.take()).ok()
}

/// Converts encoded definitions. The types of `async-openai` mirror the wire format, so they can be deserialized from
/// the encoder's output.
fn tools<T: DeserializeOwned>(format: Format, run: &Run) -> Result<Vec<T>, EncodeError> {
    let mut encoded = format.encode_tools(run.catalog().specs(), &EncodeOptions::default())?;
    let tools = match encoded.body.remove("tools") {
        Some(Value::Array(tools)) => tools,
        _ => Vec::new(),
    };
    let read = |(tool, spec): (Value, &ToolSpec)| {
        serde_json::from_value(tool).map_err(|_| EncodeError::unsupported_schema(spec.name.as_str()))
    };
    tools.into_iter().zip(run.catalog().specs()).map(read).collect()
}

/// Decodes a response. The response is first serialized to the provider's JSON, without fields that `async-openai` does
/// not know.
fn decoded<R: Serialize>(format: Format, response: &R) -> Decoded {
    let mut decoder = format.decoder();
    decoder.push(&serde_json::to_vec(response).unwrap_or_default());
    decoder.finish()
}
