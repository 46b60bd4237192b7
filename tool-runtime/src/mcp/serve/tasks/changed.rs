//! Calls that wait under another policy, or with another definition of their tool, than this server has. It refuses each
//! approval of such a call, so it ends the call when the client asks for it, and the client calls again.
//!
//! Another server over the store may still have that policy, for example during a rolling update. The lease of a run that
//! a server keeps never ends, so the store does not show whether that server lives. A call that was made after this server
//! began was made by a server that lived then, and is left to it for an hour. Since each server ends calls that are older
//! than itself, two servers do not end each other's calls in turns.

use std::time::Duration;

use jiff::Timestamp;

use crate::agent::Input;
use crate::call::{CallId, DecisionError, Outcome, ToolExecResult};
use crate::contain::discard;
use crate::mcp::serve::Served;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::runner::{ApprovalDecision, ResumeError, ServedRun, ServedRuns, ToolRunner};
use crate::store::{PendingCall, Store as _, StoreError};

/// How long a call is left to another server. A rolling update takes less, and a person decides in less.
const LEFT: Duration = Duration::from_secs(60 * 60);

/// Stores when a server began. Until then, every waiting call counts as older than the server.
pub(in crate::mcp::serve) async fn begin(served: &Served) {
    if served.tasks.began.get().is_none() {
        match served.runner.store().now().await {
            Ok(now) => drop(served.tasks.began.set(now)),
            // The next round tries again.
            Err(error) => discard(error),
        }
    }
}

/// Returns why this server ends a waiting call. `None` if the call stays: nothing has changed, another server may carry its
/// approval out, or a decision on it is being carried out.
pub(super) async fn change_since(
    run_tasks: &RunTasks,
    runner: &ToolRunner,
    call: &PendingCall,
) -> Result<Option<DecisionError>, StoreError> {
    let change = ServedRun(&run_tasks.run).change_since(call).await?;
    let is_over = change.is_some()
        && !is_others(run_tasks, runner, call).await?
        && !is_being_decided(run_tasks, runner, call).await?;
    Ok(change.filter(|_| is_over))
}

/// Ends a waiting call because of a change.
pub(super) async fn expire(
    run_tasks: &RunTasks,
    call: &PendingCall,
    change: DecisionError,
) -> Result<ToolExecResult, ResumeError> {
    let result = ServedRun(&run_tasks.run).expire_changed(&call.question(), change).await?;
    if let Some(entry) = run_tasks.calls().get_mut(&call.call_id) {
        entry.is_changed = result.outcome() == Outcome::ApprovalExpired;
    }
    Ok(result)
}

/// Whether this server ended a call because of a change, and the call had no effect: the same call is a new one.
pub(super) fn is_made_anew(run_tasks: &RunTasks, id: &CallId) -> bool {
    run_tasks.calls().get(id).is_some_and(|entry| entry.is_changed)
}

/// Whether an approval of a waiting call is left to another server, because this one would refuse it.
pub(super) async fn is_left_to_others(
    run_tasks: &RunTasks,
    runner: &ToolRunner,
    call: &PendingCall,
) -> Result<bool, StoreError> {
    Ok(ServedRun(&run_tasks.run).change_since(call).await?.is_some() && is_others(run_tasks, runner, call).await?)
}

/// Whether the server that made a call may live.
async fn is_others(run_tasks: &RunTasks, runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
    let now = runner.store().now().await?;
    let began = *run_tasks.began.get_or_init(|| now);
    Ok(call.created_at >= began.max(now.saturating_sub(LEFT).unwrap_or(Timestamp::MIN)))
}

/// Whether a server has a decision on a waiting call under its lease, or a person has denied the call: a denial needs no
/// policy.
async fn is_being_decided(run_tasks: &RunTasks, runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
    let (now, question) = (ServedRuns(runner).now(), call.question());
    let denies = |input: Input| {
        let mut decisions = input.into_decisions().into_iter();
        decisions.any(|(about, decision, _)| about == question && matches!(decision, ApprovalDecision::Deny(_)))
    };
    let posts = ServedRuns(runner).posted_to(&run_tasks.run).await?;
    Ok(posts.iter().filter(|(_, post)| post.answers.contains(&question)).any(|(_, post)| {
        let is_held = post.holder.as_ref().is_some_and(|holder| now < holder.until);
        is_held || serde_json::from_str(&post.body).is_ok_and(denies)
    }))
}
