//! `tracing`: one span per call with the `OpenTelemetry` generative-AI names, one event per contained failure, no values.

use crate::call::{CallId, Outcome};
use crate::runner::Run;
use crate::runner::stop::Stop;
use crate::store::StoreError;

/// The span around a tool's own work.
pub(super) fn span(run: &Run, tool: &str, id: &CallId) -> tracing::Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {tool}"),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = %id,
        gen_ai.tool.r#type = "function",
        gen_ai.conversation.id = run.0.options.conversation.as_deref(),
    )
}

/// Logs a failure once. What a model got wrong is for debugging; what the tool or its surroundings got wrong is
/// for operators.
pub(super) fn contained(run: &Run, tool: &str, call: &CallId, stop: &Stop) {
    let options = &run.0.options;
    let (session, conversation) = (options.session.as_deref(), options.conversation.as_deref());
    let code = stop.outcome.code();
    macro_rules! log {
        ($level:expr, $text:literal) => {
            tracing::event!($level, tool, code, %call, run = %run.0.id, session, conversation, $text)
        };
    }
    match stop.outcome {
        Outcome::Ok | Outcome::ApprovalRequired | Outcome::ClientRequired => {}
        Outcome::InstantiateFailed
        | Outcome::ExecutionError
        | Outcome::Panicked
        | Outcome::Timeout
        | Outcome::OutcomeUnknown
        | Outcome::OutputInvalid
        | Outcome::RedactionFailed
        | Outcome::ResultTooLarge
        | Outcome::ConnectionUnavailable => log!(tracing::Level::ERROR, "a tool call failed"),
        _ => log!(tracing::Level::DEBUG, "a tool call was refused"),
    }
}

/// The store could not keep a record: the one thing that must not go unnoticed.
pub(super) fn record_lost(run: &Run, tool: &str, call: &CallId, error: &StoreError) {
    tracing::error!(tool, %call, run = %run.0.id, code = error.code(), "a record could not be stored");
}
