//! A run's tools, calls and results in the types of [genai](https://docs.rs/genai) (feature `genai`).
//!
//! ```
//! use genai::chat::{ChatMessage, ChatRequest, ChatResponse};
//! use tool_runtime::adapters::genai::{answer, calls, tools};
//! use tool_runtime::Run;
//!
//! /// Offers the run's tools.
//! fn request(run: &Run) -> ChatRequest {
//!     ChatRequest::from_user("What is 2 + 3?").with_tools(tools(run))
//! }
//!
//! /// Takes a response through the gate; the request then holds what the model gets next.
//! async fn take(run: &Run, mut request: ChatRequest, response: &ChatResponse) -> ChatRequest {
//!     // genai's own history keeps what a provider wants back, such as signatures.
//!     request = request.append_message(ChatMessage::assistant(response.content.clone()));
//!     for call in calls(response) {
//!         request = request.append_message(answer(&run.exec(call).await));
//!     }
//!     request
//! }
//! # let _ = (request, take);
//! ```
//!
//! genai reads a model's arguments before it hands them over, so that what its parser drops, such as a key that occurs
//! twice or the last digits of a long number, cannot be refused here.

use genai::chat::{ChatResponse, StopReason, Tool, ToolResponse};

use crate::call::{Origin, ToolCall, ToolExecResult};
use crate::runner::Run;
use crate::tool::ToolSpec;

/// Returns the definitions of the tools that the run may use.
#[must_use]
pub fn tools(run: &Run) -> Vec<Tool> {
    let tool = |spec: &ToolSpec| {
        let tool = Tool::new(spec.name.as_str()).with_description(spec.description.to_string());
        serde_json::from_str(spec.input_schema.as_str()).map_or(tool.clone(), |schema| tool.with_schema(schema))
    };
    run.catalog().specs().map(tool).collect()
}

/// Returns the calls of a response, in order. Of a response that was cut or filtered none is complete, so that the gate
/// refuses and records each.
#[must_use]
pub fn calls(response: &ChatResponse) -> Vec<ToolCall> {
    let ended_well = matches!(
        response.stop_reason,
        Some(StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_))
    );
    let provider = response.model_iden.adapter_kind.to_string();
    let call = |call: &genai::chat::ToolCall| {
        let mut ours = ToolCall::object(call.call_id.as_str(), call.fn_name.as_str(), call.fn_arguments.to_string());
        ours.origin = Origin { provider: Some(provider.clone().into()), ..Origin::default() };
        if ended_well { ours } else { ours.incomplete() }
    };
    response.content.tool_calls().into_iter().map(call).collect()
}

/// Returns the result of a call as the model reads it.
#[must_use]
pub fn answer(result: &ToolExecResult) -> ToolResponse {
    ToolResponse::new(result.call_id().as_str(), result.to_model())
}
