//! Waiting calls that were made under another policy, or with another definition of their tool, than this server has.
//! The server would refuse each approval of such a call. It therefore ends the call when the client queries the task or
//! repeats the call, and the client can make a new call.
//!
//! Another server that shares the store may still have that policy, for example during a rolling update. The store does
//! not show whether that server is alive, because its lease on the run never ends. If a call was made after this server
//! began, the other server was alive then, so this server leaves the call to it for an hour. A server ends at once only
//! calls that are older than itself, so two servers cannot keep ending each other's calls.

use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::Input;
use crate::call::DecisionError;
use crate::runner::waiting::changed;
use crate::runner::{ApprovalDecision, Run, ServedRuns, ToolRunner};
use crate::store::{PendingCall, Store as _, StoreError};

/// How long a call is left to another server. A rolling update and the decision of a person take less time.
const LEFT: Duration = Duration::from_secs(60 * 60);

/// The rules under which a server continues a run.
pub(super) struct Rules<'r> {
    pub(super) runner: &'r ToolRunner,
    pub(super) run: &'r Run,
    /// When the server began. Until that time is known, every waiting call is treated as older than the server.
    pub(super) began: &'r OnceLock<Timestamp>,
}

impl Rules<'_> {
    /// Returns the reason why this server ends a waiting call. `None` if it keeps the call: nothing has changed,
    /// another server may carry out an approval, or a decision is being carried out.
    pub(super) async fn change_since(&self, call: &PendingCall) -> Result<Option<DecisionError>, StoreError> {
        let change = changed::change_since(self.run, call).await?;
        let is_over = change.is_some() && !self.is_others(call).await? && !self.is_being_decided(call).await?;
        Ok(change.filter(|_| is_over))
    }

    /// Whether an approval of a waiting call is left to another server, because this one would refuse it.
    pub(super) async fn leave_to_others(&self, call: &PendingCall) -> Result<bool, StoreError> {
        Ok(changed::change_since(self.run, call).await?.is_some() && self.is_others(call).await?)
    }

    /// Whether the server that made a call may still be alive.
    async fn is_others(&self, call: &PendingCall) -> Result<bool, StoreError> {
        let now = self.runner.store().now().await?;
        let began = *self.began.get_or_init(|| now);
        Ok(call.created_at >= began.max(now.saturating_sub(LEFT).unwrap_or(Timestamp::MIN)))
    }

    /// Whether a server holds the lease of a decision on a waiting call, or a person has denied the call. A denial does
    /// not depend on the policy.
    async fn is_being_decided(&self, call: &PendingCall) -> Result<bool, StoreError> {
        let (now, question) = (ServedRuns(self.runner).now(), call.question());
        let denies = |input: Input| {
            let mut decisions = input.into_decisions().into_iter();
            decisions.any(|(about, decision, _)| about == question && matches!(decision, ApprovalDecision::Deny(_)))
        };
        let posts = ServedRuns(self.runner).posted_to(self.run).await?;
        Ok(posts.iter().filter(|(_, post)| post.answers.contains(&question)).any(|(_, post)| {
            let is_held = post.holder.as_ref().is_some_and(|holder| now < holder.until);
            is_held || serde_json::from_str(&post.body).is_ok_and(denies)
        }))
    }
}
