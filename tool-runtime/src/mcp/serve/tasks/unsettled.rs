//! Tasks whose call ended with an unknown outcome. This file reads a later settlement, and settles the outcome in the
//! name of the client.

use std::time::Duration;

use jiff::Timestamp;

use crate::call::{CallId, Decider, Outcome, ToolExecResult};
use crate::component::Reconciled;
use crate::mcp::serve::tasks::run_tasks::{Look, MOST_REFUSED, RunTasks, State};
use crate::runner::waiting::outcome::outcome_of;
use crate::runner::{LaterOutcome, ResumeError, ServedRun, ServedRuns, ToolRunner};
use crate::store::{Key, StoreError};

/// How long a client is asked about an outcome after it became unknown. A client that waits for a terminal status waits
/// at most this long.
pub(super) const OPEN: Duration = Duration::from_secs(10 * 60);

/// The state of a call's unknown outcome, as this server last read it.
#[derive(Default)]
pub(super) struct UnknownOutcome {
    /// The key of the document that records the effect, if the outcome can be settled.
    place: Option<Key>,
    /// Whether the client was asked about the outcome.
    pub(super) is_asked: bool,
    /// Whether the outcome was settled, and the task has the settled result.
    pub(super) is_settled: bool,
    /// Whether the outcome cannot be settled, so that it is not looked up again.
    pub(super) is_final: bool,
}

/// Reads whether the unknown outcome of a call was settled, or can be settled by its client.
pub(super) async fn look_again(
    run_tasks: &RunTasks,
    runner: &ToolRunner,
    id: &CallId,
    result: ToolExecResult,
) -> Result<Option<Look>, StoreError> {
    let (run, place) = (&run_tasks.run, run_tasks.calls().get(id).and_then(|entry| entry.outcome.place.clone()));
    let outcome = outcome_of(run, id, place.as_ref()).await?;
    let now = ServedRuns(runner).now();
    Ok(match outcome {
        LaterOutcome::Settled(settled) => keep(run_tasks, id, (settled, false), now),
        LaterOutcome::Final => {
            if let Some(entry) = run_tasks.calls().get_mut(id) {
                entry.outcome.is_final = true;
            }
            run_tasks.shown(id, State::Ended(result))
        }
        LaterOutcome::Unreadable => run_tasks.shown(id, State::Ended(result)),
        LaterOutcome::Unsettled(call) => {
            let closes = call.unknown.call.since.saturating_add(OPEN).unwrap_or(Timestamp::MAX);
            let may = run_tasks.asks && now < closes && ServedRun(run).own_decider(&call.unknown.record.name).is_some();
            // The client may have declined through another server that shares the store.
            if may && run_tasks.is_stored() {
                run_tasks.learn(runner).await?;
            }
            let is_open = run_tasks.calls().get_mut(id).is_some_and(|entry| {
                entry.outcome.place = Some(call.place.clone());
                let is_open = may && entry.saved.asks && entry.refused <= MOST_REFUSED;
                entry.outcome.is_asked |= is_open;
                is_open
            });
            run_tasks.shown(id, if is_open { State::Unsettled(result, call) } else { State::Ended(result) })
        }
    })
}

/// Keeps the settled result of a call for its client. A result that this process settled replaces one from the store,
/// because it has the files of the call, which the store does not have.
fn keep(
    run_tasks: &RunTasks,
    id: &CallId,
    (result, has_files): (ToolExecResult, bool),
    now: Timestamp,
) -> Option<Look> {
    let result = {
        let mut calls = run_tasks.calls();
        let entry = calls.get_mut(id)?;
        if has_files || !entry.outcome.is_settled {
            (entry.updated, entry.ended, entry.outcome.is_settled) = (now, Some((result.clone(), now)), true);
        }
        entry.ended.as_ref().map_or(result, |(result, _)| result.clone())
    };
    run_tasks.news.send_replace(());
    run_tasks.shown(id, State::Settled(result))
}

/// Settles the unknown outcome of a call on behalf of its client. Every attempt is recorded.
pub(super) async fn settle(
    run_tasks: &RunTasks,
    runner: &ToolRunner,
    id: &CallId,
    outcome: Reconciled<String>,
    decider: &Decider,
) -> Result<(), StoreError> {
    let settled = run_tasks.run.settle(id, outcome, decider).await;
    let now = ServedRuns(runner).now();
    match settled {
        // The result does not fit, or the tool could not reconcile the call: the client is asked again.
        Ok(result) if matches!(result.outcome(), Outcome::ApprovalMismatch | Outcome::OutcomeUnknown) => {
            if let Some(entry) = run_tasks.calls().get_mut(id) {
                (entry.updated, entry.asked, entry.refused) = (now, entry.asked + 1, entry.refused + 1);
            }
            run_tasks.news.send_replace(());
        }
        Ok(result) => drop(keep(run_tasks, id, (result, true), now)),
        Err(ResumeError::Store(error)) => return Err(error),
        // Another decider was faster, or the principal may not settle the outcome.
        Err(_) => {}
    }
    Ok(())
}

/// Closes the question about the outcome of a call. If the store fails, a server that starts later asks it again.
pub(super) async fn stop_asking(run_tasks: &RunTasks, runner: &ToolRunner, id: &CallId) {
    if let Some(entry) = run_tasks.calls().get_mut(id) {
        (entry.updated, entry.saved.asks) = (ServedRuns(runner).now(), false);
    }
    run_tasks.news.send_replace(());
    if run_tasks.is_stored()
        && let Err(error) = run_tasks.save(runner).await
    {
        tracing::warn!(run = run_tasks.run.id(), error = error.code(), "a closed question could not be stored");
    }
}
