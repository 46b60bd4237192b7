//! Emits the events of a call, and logs and reports each failure once. Log lines contain no values.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

use crate::call::{Event, Outcome, Question, ToolExecResult};
use crate::contain::discard;
use crate::runner::Run;
use crate::runner::gate::draft::Draft;
use crate::runner::gate::ending::Stop;
use crate::runner::report::failure::Failure;
use crate::store::{StoreError, WriteHandle};

const RECORD_LOST: &str = "a record could not be stored";

/// Emits the start event of a call.
pub(in crate::runner) fn announce_start(run: &Run, draft: &Draft) {
    if run.has_sink() {
        run.emit(Event::ToolCallStart { id: draft.id.clone(), name: draft.name().to_owned() });
    }
}

/// Emits the terminal event of a call, or the event of its suspension.
pub(in crate::runner) fn announce_end(run: &Run, draft: &Draft, result: &ToolExecResult) {
    if !run.has_sink() {
        return;
    }
    let (id, name, outcome) = (draft.id.clone(), draft.name().to_owned(), result.outcome());
    let (arguments, value) = (draft.masked().cloned(), result.value().cloned());
    run.emit(if outcome.is_suspension() {
        let explanation = draft.explanation();
        Event::ToolCallSuspended {
            id,
            name,
            arguments,
            summary: explanation.and_then(|shown| shown.summary.clone()),
            changes: explanation.map(|shown| shown.changes.clone()).unwrap_or_default(),
            names: explanation.map(|shown| shown.names.clone()).unwrap_or_default(),
            outcome,
            prepared: value,
            question: result.question().cloned().unwrap_or_else(|| Question::unknown(result.call_id())),
        }
    } else {
        let (error, executed, left_out) = (result.error().cloned(), result.executed(), result.left_out());
        let earlier_call = result.earlier_call().map(|(_, call_id)| call_id.clone());
        Event::ToolCallResult { id, name, arguments, outcome, value, error, executed, left_out, earlier_call }
    });
    result.shown_media().iter().filter_map(Event::file).for_each(|event| run.emit(event));
}

/// Reports a failure of the tool, its output or its connections to operators. Any other refusal, such as invalid
/// arguments, is only logged at debug level.
#[cold]
pub(in crate::runner) fn contained(run: &Run, draft: &Draft, stop: &Stop) {
    let code = stop.outcome.code();
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
            let reason = stop.reason.as_ref();
            let text = reason.map_or(&*stop.message, |reason| &*reason.text);
            let error_type = reason.and_then(|reason| reason.error_type);
            run.report_failure(
                format_args!("a tool call failed"),
                &Failure { error_type, ..of(run, draft, code, text) },
            );
        }
        _ => {
            let options = run.options();
            let (session, conversation) = (options.session.as_deref(), options.conversation.as_deref());
            let (tool, call) = (draft.name(), draft.id.as_str());
            tracing::debug!(tool, code, call, run = run.id(), session, conversation, "a tool call was refused");
        }
    }
}

/// Reports that the store could not keep a record.
#[cold]
pub(in crate::runner) fn record_lost(run: &Run, draft: &Draft, error: &StoreError) {
    let detail = error.detail();
    let failure = Failure { is_record_lost: true, ..of(run, draft, error.code(), &detail) };
    run.report_failure(format_args!("{RECORD_LOST}"), &failure);
}

/// Waits for the write of the record of a call whose future was dropped, and reports a lost record to operators.
/// Outside a tokio runtime it does not wait, and reports only a write that has failed already.
#[cold]
pub(in crate::runner) fn await_receipt(run: &Run, draft: &Draft, mut receipt: WriteHandle) {
    if receipt.is_kept() {
        return;
    }
    let (run, tool, call) = (run.clone(), draft.name().to_owned(), draft.id.clone());
    let lost = move |error: StoreError| {
        let (code, text) = (error.code(), error.detail());
        let failure =
            Failure { tool: Some(&tool), call_id: Some(&call), is_record_lost: true, ..run.failure(code, &text) };
        run.report_failure(format_args!("{RECORD_LOST}"), &failure);
        discard(error);
    };
    match Pin::new(&mut receipt).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(kept) => kept.err().into_iter().for_each(lost),
        Poll::Pending => {
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(async move { receipt.await.err().into_iter().for_each(lost) });
            }
        }
    }
}

/// Reports that the ledger could not be written, so the call did not run.
pub(in crate::runner) fn not_entered(run: &Run, draft: &Draft, error: &StoreError) {
    store_failed(run, draft, error, "a call could not be entered in the ledger");
}

/// Reports that the store could not keep a waiting call.
pub(in crate::runner) fn not_suspended(run: &Run, draft: &Draft, error: &StoreError) {
    store_failed(run, draft, error, "a call could not be suspended");
}

#[cold]
fn store_failed(run: &Run, draft: &Draft, error: &StoreError, what: &'static str) {
    run.report_failure(format_args!("{what}"), &of(run, draft, error.code(), &error.detail()));
}

fn of<'a>(run: &'a Run, draft: &'a Draft, code: &'a str, text: &'a str) -> Failure<'a> {
    Failure { tool: Some(draft.name()), call_id: Some(&draft.id), ..run.failure(code, text) }
}
