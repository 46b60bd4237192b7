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
use crate::mcp::serve::tasks::Tasks;
use crate::mcp::serve::tasks::run_tasks::RunTasks;
use crate::runner::{ApprovalDecision, ResumeError, ServedRun, ServedRuns, ToolRunner};
use crate::store::{PendingCall, Store as _, StoreError};

/// How long a call is left to another server. A rolling update takes less, and a person decides in less.
const LEFT: Duration = Duration::from_secs(60 * 60);

impl Tasks {
    /// Stores when the server began. Until then, every waiting call counts as older than the server.
    pub(in crate::mcp::serve) async fn begin(&self, runner: &ToolRunner) {
        if self.began.get().is_none() {
            match runner.store().now().await {
                Ok(now) => drop(self.began.set(now)),
                // The next round tries again.
                Err(error) => discard(error),
            }
        }
    }
}

impl RunTasks {
    /// Returns why this server ends a waiting call. `None` if the call stays: nothing has changed, another server may
    /// carry its approval out, or a decision on it is being carried out.
    pub(super) async fn change_since(
        &self,
        runner: &ToolRunner,
        call: &PendingCall,
    ) -> Result<Option<DecisionError>, StoreError> {
        let change = ServedRun(&self.run).change_since(call).await?;
        let is_over =
            change.is_some() && !self.is_others(runner, call).await? && !self.is_being_decided(runner, call).await?;
        Ok(change.filter(|_| is_over))
    }

    /// Whether an approval of a waiting call is left to another server, because this one would refuse it.
    pub(super) async fn is_left_to_others(&self, runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
        Ok(ServedRun(&self.run).change_since(call).await?.is_some() && self.is_others(runner, call).await?)
    }

    /// Whether the server that made a call may live.
    async fn is_others(&self, runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
        let now = runner.store().now().await?;
        let began = *self.began.get_or_init(|| now);
        Ok(call.created_at >= began.max(now.saturating_sub(LEFT).unwrap_or(Timestamp::MIN)))
    }

    /// Whether a server has a decision on a waiting call under its lease, or a person has denied the call: a denial needs
    /// no policy.
    async fn is_being_decided(&self, runner: &ToolRunner, call: &PendingCall) -> Result<bool, StoreError> {
        let (now, question) = (ServedRuns(runner).now(), call.question());
        let denies = |input: Input| {
            let mut decisions = input.into_decisions().into_iter();
            decisions.any(|(about, decision, _)| about == question && matches!(decision, ApprovalDecision::Deny(_)))
        };
        let posts = ServedRuns(runner).posted_to(&self.run).await?;
        Ok(posts.iter().filter(|(_, post)| post.answers.contains(&question)).any(|(_, post)| {
            let is_held = post.holder.as_ref().is_some_and(|holder| now < holder.until);
            is_held || serde_json::from_str(&post.body).is_ok_and(denies)
        }))
    }

    /// Ends a waiting call because of a change.
    pub(super) async fn expire_changed(
        &self,
        call: &PendingCall,
        change: DecisionError,
    ) -> Result<ToolExecResult, ResumeError> {
        let result = ServedRun(&self.run).expire_changed(&call.question(), change).await?;
        if let Some(entry) = self.calls().get_mut(&call.call_id) {
            entry.is_changed = result.outcome() == Outcome::ApprovalExpired;
        }
        Ok(result)
    }

    /// Whether this server ended the call because of a change, and the call had no effect: the same call is a new one.
    pub(super) fn is_made_anew(&self, id: &CallId) -> bool {
        self.calls().get(id).is_some_and(|entry| entry.is_changed)
    }
}
