//! Methods for calls that do not end in one pass: they decide, answer or close a waiting call, or continue a run or a
//! call of another process.
//!
//! The file is long because of the documentation; each method only calls a function in a submodule of the runner. No
//! module imports this one. [`orphans`](crate::runner::ledger::orphans) closes the calls of an ended graph by way of
//! [`Run::abandon`], and therefore does not import the gate.

use tokio_util::sync::CancellationToken;

use crate::call::{CallId, Decider, Question, ToolExecResult, ToolInvocationRecord};
use crate::component::Reconciled;
#[cfg(feature = "tokens")]
use crate::runner::SealingKeys;
#[cfg(feature = "mcp-server")]
use crate::runner::gate::call_client::CallClient;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::recover;
use crate::runner::run::{restore, snapshot};
use crate::runner::waiting::late::Party;
#[cfg(feature = "tokens")]
use crate::runner::waiting::tokens;
use crate::runner::waiting::{abandon, approval, client, expired, grant, grants, late, posting, settle};
use crate::runner::{ApprovalDecision, Grant, ResumeError, Run, RunOptions, RunSnapshot, ToolRunner};
use crate::store::{Key, StoreError, StoredGrant, StoredUnknown};

impl Run {
    /// Finishes a call that waits for an approval. A second decision is refused.
    ///
    /// `question` identifies the details that the decider saw. It comes from the [result](ToolExecResult::question),
    /// the event or the [document](crate::store::PendingCall::question) of the call. If the call now asks a different
    /// question, the decision is refused. A graph (an agent or a script that runs as a tool) asks a new question for
    /// each of its calls.
    ///
    /// The policy determines who may decide. The person has to belong to the run's tenant. If the policy lists roles
    /// for deciders, the person needs one of them; if it lists principals, the person has to be one of them. The
    /// principal of the run may decide only if the policy sets `own_calls`. Any other attempt to decide is recorded and
    /// has no effect.
    ///
    /// If the policy requires several approvals (`required` under `[approvals]`), an approval that is not the last one
    /// is stored and recorded, and the call waits with the same question for other deciders.
    /// [`ToolExecResult::approvals`] returns the numbers of given and required approvals. Each person counts once, and
    /// one denial ends the call. A decider who edits the arguments changes the question, and only the editor's approval
    /// counts for it. If a call needs several approvals, no person can answer in the tool's place.
    ///
    /// The call has to belong to the run's principal and tenant. A decision that runs the call, or answers in the
    /// tool's place, also requires that the policy, the tool's definition, the arguments, the principal's attributes
    /// and the run's [`Caller`](crate::call::Caller) are the same as at the suspension, and that the run has no role
    /// and no tool that the call's run did not have. Edited arguments must match the schema and the policy must allow
    /// them; an answer must match the output schema. Otherwise the result has the outcome `approval_mismatch`, with the
    /// difference ([`SafeError::mismatch`](crate::call::SafeError::mismatch)) or the broken rules
    /// ([`SafeError::errors`](crate::call::SafeError::errors)). The attempt is recorded
    /// ([`DecisionRecord`](crate::store::DecisionRecord)), and the call still waits for a corrected decision. It can be
    /// denied, [expired](Run::expire) or [abandoned](Run::abandon) in any case.
    ///
    /// # Errors
    /// No such call waits for an approval, the decider may not decide, or the store failed. For a decision that comes
    /// too late, does not match, or answers a different question than the call's, the method returns a result, not an
    /// error.
    pub async fn resume(
        &self,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        approval::resume(self, None, question, decision, decider).await
    }

    /// As [`resume`](Self::resume), but a tool that begins can use the client at the other end of a connection.
    #[cfg(feature = "mcp-server")]
    pub(crate) async fn resume_for(
        &self,
        client: Option<Box<CallClient>>,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        approval::resume(self, client, question, decision, decider).await
    }

    /// Closes a call whose time to wait for an approval is up. It ends as `approval_expired`; a graph whose calls might
    /// have had effects ends as `outcome_unknown`. The method does not compare the time: before the deadline
    /// ([`PendingCall::expires_at`](crate::store::PendingCall::expires_at)), it closes the call too.
    ///
    /// # Errors
    /// No such call waits for an approval, or the store failed. If the call now asks a different question than
    /// `question`, the method returns a result with the mismatch, and the call still waits.
    pub async fn expire(&self, question: &Question) -> Result<ToolExecResult, ResumeError> {
        approval::expire(self, question).await
    }

    /// Checks whether a decider may approve the call of this question now, under all policies of the run. Nothing is
    /// recorded; a decider of another tenant is reported to operators. If a call needs several approvals, a decider who
    /// has approved it before gets [`DecisionError::SameDecider`](crate::call::DecisionError::SameDecider), but can
    /// still deny it.
    ///
    /// # Errors
    /// No call waits with this question ([`ResumeError::NotWaiting`]), the decider may not decide on it
    /// ([`ResumeError::NotAllowed`]), or the store failed.
    pub async fn may_decide(&self, question: &Question, decider: &Decider) -> Result<(), ResumeError> {
        posting::may_decide(self, question, decider).await
    }

    /// Stores a person's answer to the question of a waiting call as a grant for later calls. The call itself still
    /// waits: decide on it with [`resume`](Self::resume). The grant is recorded in the chain of the run.
    ///
    /// # Errors
    /// The call does not wait for an approval or now asks a different question; the decider may not decide on it; the
    /// grant allows calls although the call needs several approvals, which one person cannot give for later calls; or
    /// the policy has changed since the suspension. These refusals are recorded. Other errors are not recorded: the
    /// call has expired; the grant does not fit the call (see the variants of [`ResumeError`] that begin with `Grant`);
    /// or the store failed.
    pub async fn remember(
        &self,
        question: &Question,
        remember: Grant,
        decider: &Decider,
    ) -> Result<StoredGrant, ResumeError> {
        grant::remember(self, question, remember, decider).await
    }

    /// Finishes a call that waits for its client with the client's result, a JSON value as text. Only the first
    /// matching result counts.
    ///
    /// The value is untrusted. The limit of the tool's result (32 KiB by default) is also the limit of the value. It is
    /// validated against the tool's `client_result` and written through the tool's allowlist, and it puts the tool's
    /// labels on the run. The run has to match the call as for [`Run::resume`].
    ///
    /// If the value does not match, the result is `approval_mismatch` with the broken rules or the difference, the
    /// attempt is recorded, and the call waits for another value. A value that arrives after the deadline is not read:
    /// a call of a `read_only` tool ends as `approval_expired`, any other call as `outcome_unknown`.
    ///
    /// # Errors
    /// No call waits for a client under this id, or the store failed. For a value that does not match, the method
    /// returns a result, not an error.
    pub async fn client_result(&self, call_id: &str, value: &str) -> Result<ToolExecResult, ResumeError> {
        client::client_result(self, call_id, value).await
    }

    /// Closes a call that waits for its client because the client could not execute it. It ends as `execution_error`.
    ///
    /// # Errors
    /// No call waits for a client under this id, or the store failed.
    pub async fn client_failed(&self, call_id: &str) -> Result<ToolExecResult, ResumeError> {
        client::client_failed(self, call_id).await
    }

    /// Closes a call that waits for a person or a client and is no longer needed. It ends as `cancelled`. It ends as
    /// `outcome_unknown` if a client may have executed a tool with effects, or if calls of a waiting graph might have
    /// had effects.
    ///
    /// # Errors
    /// No call waits under this id, or the store failed.
    pub async fn abandon(&self, call_id: &str) -> Result<ToolExecResult, ResumeError> {
        abandon::abandon(self, call_id).await
    }

    /// Settles a call of this run that ended as `outcome_unknown`, once. The person states that it took effect, with
    /// its result as JSON text ([`Reconciled::TookEffect`]); states that it had no effect ([`Reconciled::Prevented`]);
    /// or lets the tool reconcile it ([`Reconciled::Unknown`]). Until a call is settled, later calls of the same effect
    /// wait for a person, unless the tool can reconcile the earlier call.
    ///
    /// A person who may decide on a call of the tool may settle it. The result is validated against the output schema
    /// and written through the allowlist like the tool's own. A separate record in the chain of the run contains the
    /// settlement, the decider and the reason. The record of the call and the history of a conversation do not change.
    /// [`unsettled_calls`](trait@crate::store::Store#method.unsettled_calls) lists the calls to settle, and
    /// [`RunQueue::settle`](crate::agent::RunQueue::settle) settles them without their run.
    ///
    /// Returns the result of the settled call, which is `cancelled` if the call had no effect. Returns
    /// `outcome_unknown` if the tool could not reconcile the call, and `approval_mismatch` if the stated result does
    /// not fit the tool.
    ///
    /// # Errors
    /// No call of unknown outcome has this id, or it was settled before ([`ResumeError::NotWaiting`]); the decider may
    /// not decide on it ([`ResumeError::NotAllowed`]); or the store failed. A refused attempt is recorded.
    pub async fn settle(
        &self,
        call_id: &CallId,
        outcome: Reconciled<String>,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        settle::settle(self, call_id, outcome, decider).await
    }

    /// Encrypts a call that waits for an approval, with the state of its run, into a token. Any client may keep the
    /// token, because without the key it is random text. [`ToolRunner::open_token`] opens it in any process that has
    /// the key.
    ///
    /// A decision does not invalidate the token. In two processes with independent stores, the call can run once in
    /// each. To prevent this, let the processes share a store, or pass
    /// [`ToolContext::idempotency_key`](crate::ToolContext::idempotency_key), which is the same in both, to the outside
    /// system. To revoke a token before it expires, remove its key from the [`SealingKeys`].
    ///
    /// # Errors
    /// No call waits for an approval under this id, the store failed, or the system returned no random bytes.
    #[cfg(feature = "tokens")]
    pub async fn seal(&self, call_id: &str, keys: &SealingKeys) -> Result<String, ResumeError> {
        tokens::seal(self, call_id, keys).await
    }

    /// Returns the current state of the run. Take the snapshot while no call is running: a call of a tool with effects
    /// that still runs is `outcome_unknown` in the restored run.
    ///
    /// # Errors
    /// The store failed.
    pub async fn snapshot(&self) -> Result<RunSnapshot, StoreError> {
        snapshot::snapshot(self).await
    }

    /// Returns the result of a call of this run from its record, for a caller whose future was dropped. The record does
    /// not contain output that only the model may see.
    ///
    /// A call without a record is `outcome_unknown` if its tool has effects and the call had begun in this process, in
    /// the process that took the run's snapshot, or in any other process according to the ledger. `None` if the call
    /// has no record and cannot have had an effect. Records of another principal or tenant are ignored.
    ///
    /// A call whose process is gone is closed as `outcome_unknown`, unless its tool may reconcile or repeat it. A call
    /// of such a tool stays open until [`exec`](Self::exec) of the same call, [`recover`](Self::recover), a restored
    /// conversation or a [sweep](crate::ToolRunner::sweep) continues it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn recorded(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        LedgerClient(self).recorded(call_id).await
    }

    /// Continues a call whose process is gone. The tool reconciles the call, or runs again if it is `idempotent`. Any
    /// other call ends as `outcome_unknown`. If the call has a record, returns the recorded result.
    ///
    /// Use this method after [`resume`](Self::resume) finds that the call no longer waits. For a call that never
    /// waited, [`exec`](Self::exec) of the same call has the same effect. A conversation, a worker and an engine for
    /// durable execution continue such calls by themselves. `None` if the call has no record, and either did not begin
    /// or still runs in another process whose lease has not ended.
    ///
    /// ```
    /// use tool_runtime::call::CallId;
    /// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// let run = runner.run(RunOptions::new().run_id("run-1"));
    /// assert!(run.recover(&CallId::new("call-1")).await?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn recover(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        Ok(recover::go_on(self, call_id).await?.flatten())
    }
}

impl ToolRunner {
    /// Restores a run from its snapshot, with its evidence, spending, loop guard and labels. Waiting calls are written
    /// to the store, unless it has them or knows that they began or ended.
    ///
    /// The restored run has the tools and the roles that both the snapshot and the options name, and the labels of
    /// either. The policy also evaluates the principal's roles and attributes at the time of the snapshot: a role that
    /// hides tools still hides them after the principal has lost it. If the run had another policy than the runner's,
    /// both apply from now on: the strictest verdict, the lowest of each budget and limit, the labels of both, and no
    /// tool that the run could not see. A waiting call runs only under the policies that suspended it, see
    /// [`Run::resume`].
    ///
    /// # Errors
    /// The snapshot or a waiting call in it belongs to another principal or tenant; the options name another caller;
    /// the run was continued under more than 16 other policies, or with more than 16 other sets of roles and
    /// attributes; the run was purged or erased ([`StoreError::RunPurged`]); or the store failed.
    pub async fn restore(&self, snapshot: RunSnapshot, options: RunOptions) -> Result<Run, ResumeError> {
        restore::restore(self, snapshot, options).await
    }

    /// Opens a token: restores the run of its call as [`restore`](Self::restore) does, and returns it with the question
    /// of the call, for [`Run::resume`]. The options name the principal and the tenant of the call.
    ///
    /// # Errors
    /// The token was changed, it expired, another version of the library sealed it, `keys` does not have its key, or it
    /// belongs to another principal or tenant; the definition, the policy or the run has changed since the call was
    /// sealed; in the store of this runner, the call now asks a different question
    /// ([`DecisionError::Question`](crate::call::DecisionError::Question); seal a new token) or was decided before; the
    /// run cannot be [restored](Self::restore); or the store failed.
    #[cfg(feature = "tokens")]
    pub async fn open_token(
        &self,
        token: &str,
        keys: &SealingKeys,
        options: RunOptions,
    ) -> Result<(Run, Question), ResumeError> {
        tokens::open(self, token, keys, options).await
    }

    /// Returns the grants of a tenant that have not expired, oldest first. `None` selects the grants of runs without a
    /// tenant.
    ///
    /// # Errors
    /// The store failed.
    pub async fn grants(&self, tenant: Option<&str>) -> Result<Vec<StoredGrant>, StoreError> {
        grants::of_tenant(&self.shared, tenant).await
    }

    /// Revokes a grant as [`StoredGrant::revoke`] does. Calls that the grant permitted before keep running. Returns
    /// `false` if the grant was not revoked.
    ///
    /// # Errors
    /// The store failed.
    pub async fn revoke(&self, grant: &StoredGrant, decider: &Decider) -> Result<bool, StoreError> {
        grants::revoke(&self.shared, grant, decider).await
    }

    /// Settles abandoned calls, and then removes expired documents, as
    /// [`sweep`](trait@crate::store::Store#method.sweep) of the runner's store does. Returns the number of removed
    /// documents.
    ///
    /// A call is abandoned if its process is gone and no process continues its run. If this runner has the tool with
    /// the same definition, and neither the tool nor a tool of its graph borrows a connection, the sweep reconciles,
    /// repeats or closes the call for the principal of its run. The sweep calls `reconcile` unless the policy of this
    /// runner denies the call. An `idempotent` tool runs again if that policy allows the call, or if the call was
    /// approved under the same policy. A tool that runs for longer than ten minutes in a sweep is stopped. Any other
    /// call that can be reconciled or repeated stays open for a week, and is then closed as `outcome_unknown`. A call
    /// that can be neither is closed at once.
    ///
    /// A call that waits for a person in a run that no process continues ends as with [`Run::expire`] once its deadline
    /// has passed, or a week later if this runner does not have its tool. A call that waits for a client ends as with
    /// [`Run::abandon`] at the same times. The same applies to a waiting call inside a graph whose own call is over. If
    /// an engine for durable execution has the run, the sweep leaves the call to the engine until a week after the
    /// deadline.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// assert_eq!(runner.sweep().await?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store failed. Calls that were closed and documents that were removed before the failure stay so.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        self.sweep_until(&CancellationToken::new()).await
    }

    /// As [`sweep`](Self::sweep), but takes over no further call after `stop` fires.
    pub(crate) async fn sweep_until(&self, stop: &CancellationToken) -> Result<u64, StoreError> {
        let taken_over = recover::take_over_left(self, stop, |_| true).await;
        let expired = expired::expire_left(self, stop).await;
        // A call that cannot be read does not stop the other parts of the sweep.
        let removed = if stop.is_cancelled() { Ok(0) } else { self.store().sweep().await };
        taken_over.and(expired).and(removed)
    }

    /// Returns a call of unknown outcome, with the key of its effect. `None` if the run of this principal and tenant
    /// has none under the id.
    pub(crate) async fn unknown_call(
        &self,
        run_id: &str,
        party: Party<'_>,
        call_id: &CallId,
    ) -> Result<Option<(Key, StoredUnknown)>, StoreError> {
        let theirs = |record: &ToolInvocationRecord| (record.principal.as_deref(), record.tenant.as_deref()) == party;
        settle::find(&self.shared, run_id, call_id, theirs).await
    }

    /// Records a settlement of a call whose outcome is not unknown. If the party has no record of the call, records
    /// nothing, unless the ids belong to a call of another tenant: see [`settle::refuse_stranger`].
    pub(crate) async fn note_late_settlement(
        &self,
        run_id: &str,
        party: Party<'_>,
        call_id: &CallId,
        outcome: &Reconciled<String>,
        decider: &Decider,
    ) -> Result<(), StoreError> {
        let kind = settle::kind(outcome);
        if !late::append(self, run_id, Some(party), (call_id, None), (kind, Some(decider))).await? {
            settle::refuse_stranger(self, run_id, call_id, (kind, decider)).await;
        }
        Ok(())
    }

    /// Records a decision that came too late, came twice, or answers a question that was replaced. Use this method in a
    /// program that delivers decisions by its own means, such as the handler of an engine for durable execution;
    /// [`Run::resume`], [`RunQueue`](crate::agent::RunQueue) and tokens record such decisions themselves.
    ///
    /// Pass the decider that the application authenticated. For each call, at most 16 refusals of one decider are
    /// recorded. Nothing is recorded for a call without a record in the store, or for a call of another tenant than the
    /// decider's.
    ///
    /// ```
    /// use tool_runtime::call::{Decider, Question};
    /// use tool_runtime::runner::ApprovalDecision;
    /// use tool_runtime::store::StoreError;
    /// use tool_runtime::ToolRunner;
    ///
    /// async fn refuse(runner: &ToolRunner, run: &str, question: &Question) -> Result<(), StoreError> {
    ///     let decider = Decider::new("grace").tenant("acme");
    ///     runner.record_late(run, question, &ApprovalDecision::Approve, &decider).await
    /// }
    /// ```
    ///
    /// # Errors
    /// The store failed.
    pub async fn record_late(
        &self,
        run_id: &str,
        question: &Question,
        decision: &ApprovalDecision,
        decider: &Decider,
    ) -> Result<(), StoreError> {
        let (asked, by) = ((question.call_id(), Some(question)), (decision.kind(), Some(decider)));
        late::append(self, run_id, None, asked, by).await.map(drop)
    }
}
