//! What leaves a call in addition to its record and its result: events, one span with the `OpenTelemetry` names for generative
//! AI, and one log line and one report for each contained failure. Spans and log lines hold no values.

use std::sync::Arc;

use crate::call::{CallId, Event, Outcome, ToolExecResult};
use crate::runner::Run;
use crate::runner::draft::Draft;
use crate::runner::ending::Stop;
use crate::runner::failure::Failure;
use crate::store::StoreError;

/// Emits the start of a call.
pub(super) fn announce_start(run: &Run, draft: &Draft) {
    if run.is_heard() {
        run.emit(Event::ToolCallStart { id: draft.id.clone(), name: draft.name.clone() });
    }
}

/// Emits the end of a call, or its suspension.
pub(super) fn announce_end(run: &Run, draft: &Draft, result: &ToolExecResult) {
    if !run.is_heard() {
        return;
    }
    let (id, name, outcome) = (draft.id.clone(), draft.name.clone(), result.outcome());
    let (arguments, value) = (draft.masked().map(Arc::clone), result.shared_value().cloned());
    run.emit(if outcome.is_suspension() {
        Event::ToolCallSuspended { id, name, arguments, outcome, prepared: value }
    } else {
        let (error, executed) = (result.error().cloned(), result.executed());
        Event::ToolCallResult { id, name, arguments, outcome, value, error, executed }
    });
    result.shown_media().iter().filter_map(Event::file).for_each(|event| run.emit(event));
}

/// The span around a tool's own work.
pub(super) fn span(run: &Run, tool: &str, id: &CallId) -> tracing::Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {tool}"),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        // As text, which subscribers escape: the model chose it.
        gen_ai.tool.call.id = id.as_str(),
        gen_ai.tool.r#type = "function",
        gen_ai.conversation.id = run.options().conversation.as_deref(),
    )
}

/// Logs a failure once, and reports it to the operators' sink. What a model got wrong is for debugging; what the tool
/// or its surroundings got wrong is for operators.
pub(super) fn contained(run: &Run, draft: &Draft, stop: &Stop) {
    let options = run.options();
    let (session, conversation) = (options.session.as_deref(), options.conversation.as_deref());
    let (tool, call, code) = (draft.name.as_str(), draft.id.as_str(), stop.outcome.code());
    macro_rules! log {
        ($level:expr, $text:literal) => {
            tracing::event!($level, tool, code, call, run = run.id(), session, conversation, $text)
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
        | Outcome::ConnectionUnavailable
        | Outcome::ConnectionFailed => {
            log!(tracing::Level::ERROR, "a tool call failed");
            let reason = stop.reason.as_ref();
            let text = reason.map_or(&*stop.message, |reason| &*reason.text);
            let error_type = reason.and_then(|reason| reason.error_type);
            run.report_failure(&Failure { error_type, ..of(run, draft, code, text) });
        }
        _ => log!(tracing::Level::DEBUG, "a tool call was refused"),
    }
}

/// The store could not keep a record.
pub(super) fn record_lost(run: &Run, draft: &Draft, error: &StoreError) {
    store_failed(run, draft, error, "a record could not be stored");
}

/// The ledger could not be written, so the call did not run.
pub(super) fn not_entered(run: &Run, draft: &Draft, error: &StoreError) {
    store_failed(run, draft, error, "a call could not be entered in the ledger");
}

/// The store could not keep a call that waits.
pub(super) fn not_suspended(run: &Run, draft: &Draft, error: &StoreError) {
    store_failed(run, draft, error, "a call could not be suspended");
}

fn store_failed(run: &Run, draft: &Draft, error: &StoreError, what: &'static str) {
    let (tool, call, code) = (draft.name.as_str(), draft.id.as_str(), error.code());
    tracing::error!(tool, call, run = run.id(), code, "{what}");
    run.report_failure(&of(run, draft, code, &error.detail()));
}

fn of<'a>(run: &'a Run, draft: &'a Draft, code: &'a str, text: &'a str) -> Failure<'a> {
    Failure { tool: Some(&draft.name), call_id: Some(&draft.id), ..run.failure(code, text) }
}
