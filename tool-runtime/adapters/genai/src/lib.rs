//! The tools, calls and results of [tool-runtime](https://docs.rs/tool-runtime) in the types of
//! [genai](https://docs.rs/genai).
//!
//! genai keeps the requests and the history. [`tools`] converts the tools of a [`Run`], [`decode`] reads a response,
//! and [`tool_response`] converts a result. The run decides, runs, redacts and records each call.
//!
//! ```
//! use genai::chat::{ChatMessage, ChatRequest, ChatResponse};
//! use tool_runtime::Run;
//! use tool_runtime_genai::{decode, tool_response, tools};
//!
//! /// Offers the run's tools.
//! fn request(run: &Run) -> ChatRequest {
//!     ChatRequest::from_user("What is 2 + 3?").with_tools(tools(run))
//! }
//!
//! /// Runs the calls of a response through the gate, and adds them and their results to the request.
//! async fn take(run: &Run, mut request: ChatRequest, response: &ChatResponse) -> ChatRequest {
//!     // genai's own message keeps the data that a provider needs again, such as signatures.
//!     request = request.append_message(ChatMessage::assistant(response.content.clone()));
//!     for decoded in decode(response).calls {
//!         request = request.append_message(tool_response(&run.exec(decoded.call).await));
//!     }
//!     request
//! }
//! # let _ = (request, take);
//! ```
//!
//! genai parses a model's arguments before this package gets them. Its parser drops some mistakes, such as a repeated
//! key or the last digits of a long number, so the gate cannot refuse these.

use genai::chat::{ChatResponse, ContentPart, StopReason, Tool, ToolResponse};

use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, FinishReason};
use tool_runtime::{Run, ToolExecResult, ToolSpec};

/// Returns the definitions of the tools that the run may use.
#[must_use]
pub fn tools(run: &Run) -> Vec<Tool> {
    let tool = |spec: &ToolSpec| {
        let tool = Tool::new(spec.name.as_str()).with_description(spec.description.to_string());
        serde_json::from_str(spec.input_schema.as_str()).map_or(tool.clone(), |schema| tool.with_schema(schema))
    };
    run.catalog().specs().map(tool).collect()
}

/// Decodes the text, the reasoning and the calls of a response. The gate refuses and records the calls of a response
/// that was cut or filtered.
#[must_use]
pub fn decode(response: &ChatResponse) -> Decoded {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => Some(Part::text(text.as_str())),
        ContentPart::ReasoningContent(text) => Some(Part::reasoning(text.as_str())),
        ContentPart::ToolCall(call) => {
            let arguments = call.fn_arguments.to_string();
            Some(Part::Call(CallMessage::new(call.call_id.as_str(), call.fn_name.as_str(), &arguments)))
        }
        _ => None,
    };
    let finish = match response.stop_reason {
        Some(StopReason::ToolCall(_)) => FinishReason::ToolCalls,
        Some(StopReason::Completed(_) | StopReason::StopSequence(_)) => FinishReason::Stop,
        Some(StopReason::MaxTokens(_)) => FinishReason::Length,
        Some(StopReason::ContentFilter(_)) => FinishReason::ContentFilter,
        Some(StopReason::Other(_)) => FinishReason::Error,
        None => FinishReason::Truncated,
    };
    let mut decoded = Decoded::new(&response.content.parts().iter().filter_map(part).collect::<Vec<_>>(), finish);
    decoded.provider_finish = response.stop_reason.as_ref().map(|reason| reason.raw().to_owned());
    decoded.model = Some(response.model_iden.model_name.to_string());
    // Arguments that are not an object reach the gate unchanged. The gate refuses them.
    for (decoded, call) in decoded.calls.iter_mut().zip(response.content.tool_calls()) {
        decoded.call.provider = Some(response.model_iden.adapter_kind.to_string().into());
        if !call.fn_arguments.is_object() {
            decoded.set_arguments(call.fn_arguments.to_string());
        }
    }
    decoded
}

/// Returns the result of a call. genai's results contain only text, so a file appears as text or is described in a
/// sentence.
#[must_use]
pub fn tool_response(result: &ToolExecResult) -> ToolResponse {
    ToolResponse::new(result.call_id().as_str(), result.to_model_text())
}
