//! Decisions on calls of any run of a store, from any process that has a runner over it.

use std::sync::Arc;

use serde::Deserialize;

use super::RunQueue;
use super::post::{self, Message};
use super::queue::corrupt;
use crate::agent::Input;
use crate::call::{CallId, Caller, Decider, Question, ToolExecResult};
use crate::component::Reconciled;
use crate::runner::waiting::{late, posting, settle};
use crate::runner::{ApprovalDecision, Grant, ResumeError, Run, RunSnapshot};
use crate::store::{DecisionKind, Key, PendingCall, RecordFilter, StoreError, StoredGrant, StoredRun};

/// The largest number of decisions in one transaction.
const MOST_TOGETHER: usize = 256;

impl RunQueue {
    /// Answers a question of a run of any kind: the decision is posted to a run of the workers or of an MCP server, and
    /// carried out here for a call that an application made by itself ([`Run::exec`](crate::Run::exec)). The command
    /// line's `approvals` calls it.
    ///
    /// Returns the result if it was carried out here; it can also be a mismatch of the decision, and the call then
    /// still waits. An approval of a call that needs those of other deciders too is noted here for every run
    /// ([`ToolExecResult::approvals`]); only the last one is posted. `None` if it was posted: the worker or the server
    /// that has the run, or takes it next, carries it out.
    ///
    /// # Errors
    /// No call of the run asks the question, a post to the run answers it already, or the decider belongs to another
    /// tenant ([`ResumeError::NotWaiting`]); the decider may not decide ([`ResumeError::NotAllowed`]); edited arguments
    /// or a value do not fit the tool or the policy ([`ResumeError::Invalid`]), or the call changed
    /// ([`ResumeError::Mismatch`]), if this process has the tool and the policy of the call; an engine for
    /// durable execution drives the run, and takes decisions itself ([`ResumeError::Engine`]); or the store failed.
    pub async fn decide(
        &self,
        run_id: &str,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<Option<ToolExecResult>, ResumeError> {
        let (run, stored) = self.deciding_run(run_id, question, (decision.kind(), decider)).await?;
        match stored {
            Some(stored) => {
                let input = Input::new().decide(question, decision, decider);
                self.post_noting(run_id, stored.tenant.as_deref(), &input).await.map(|mut noted| noted.pop())
            }
            None => {
                let result = Box::pin(run.resume(question, decision, decider)).await?;
                Ok(Some(result))
            }
        }
    }

    /// Decides several calls of runs that workers or MCP servers continue, in one transaction: either every decision is
    /// posted, or none is. Each decision names its run, and is checked as in [`decide`](Self::decide). A run takes each
    /// posted decision by itself, up to 64 of them; more decisions on one run are taken as a whole.
    ///
    /// The process that carries a decision out checks it again, on its own. It refuses a decision that no longer fits,
    /// such as an approval of a call whose precondition has changed; the other decisions take effect.
    ///
    /// Returns an item for each decision: the result of an approval that was noted, because the call needs others too;
    /// `None` for a decision that is posted.
    ///
    /// ```
    /// use tool_runtime::agent::RunQueue;
    /// use tool_runtime::call::Decider;
    /// use tool_runtime::runner::{ApprovalDecision, ResumeError};
    /// use tool_runtime::store::PendingCall;
    ///
    /// /// Denies every call that the page has shown, or none of them.
    /// async fn deny(queue: &RunQueue, shown: &[PendingCall], grace: &Decider) -> Result<(), ResumeError> {
    ///     let deny = |call: &PendingCall| (call.run_id.clone(), call.question(), ApprovalDecision::Deny(None));
    ///     let decisions: Vec<_> = shown.iter().map(deny).collect();
    ///     let decided = queue.decide_all(&decisions, grace).await;
    ///     decided.map(drop).map_err(|(_refused, error)| error)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`decide`](Self::decide), with the question whose decision was refused, `None` if the store failed. A
    /// question occurs twice ([`ResumeError::NotWaiting`]). No worker or server has the run of a call, because an
    /// application continues it by itself ([`ResumeError::UnknownRun`]): decide that call alone. There are more than
    /// 256 decisions ([`StoreError::Full`]). Nothing is posted or noted then.
    pub async fn decide_all(
        &self,
        decisions: &[(Arc<str>, Question, ApprovalDecision)],
        decider: &Decider,
    ) -> Result<Vec<Option<ToolExecResult>>, (Option<Question>, ResumeError)> {
        if decisions.len() > MOST_TOGETHER {
            return Err((None, ResumeError::Store(StoreError::Full)));
        }
        let mut runs: Vec<(StoredRun, Input)> = Vec::new();
        for (run_id, question, decision) in decisions {
            let at = |error: ResumeError| (Some(question.clone()), error);
            let (_, stored) = self.deciding_run(run_id, question, (decision.kind(), decider)).await.map_err(at)?;
            let stored = stored.ok_or(ResumeError::UnknownRun).map_err(at)?;
            let place = runs.iter().position(|(run, _)| run.run_id == stored.run_id);
            let place = place.unwrap_or_else(|| {
                runs.push((stored, Input::new()));
                runs.len() - 1
            });
            let (_, input) = &mut runs[place];
            *input = std::mem::take(input).decide(question, decision.clone(), decider);
        }
        let mut messages = Vec::new();
        for (stored, input) in &runs {
            messages.push(Message::check(self, stored, input).await?);
        }
        let noted = post::all(self, messages).await?;
        let of = |(run_id, question, _): &(Arc<str>, Question, _)| {
            let place = runs.iter().position(|(run, _)| run.run_id == *run_id)?;
            noted[place].iter().find(|result| result.call_id() == question.call_id()).cloned()
        };
        Ok(decisions.iter().map(of).collect())
    }

    /// Whether a decider may answer a question of a run, by every policy that the run is held to. Nothing is recorded;
    /// a decider of another tenant is reported to operators.
    ///
    /// # Errors
    /// As [`decide`](Self::decide), except that the posts are not checked.
    pub async fn may_decide(&self, run_id: &str, question: &Question, decider: &Decider) -> Result<(), ResumeError> {
        let (run, _) = self.asking_run(run_id, question, decider).await?;
        run.may_decide(question, decider).await
    }

    /// Checks a decision as [`decide`](Self::decide) does, without carrying it out or posting it. Call it before you
    /// deliver a decision by your own means, such as the promise of a workflow engine. The workflow checks it again, but a decider without the
    /// right could fill the engine's journal and keep others out meanwhile. A refused decision is recorded.
    ///
    /// # Errors
    /// As [`decide`](Self::decide). Messages that were posted to the run are not read, so a question that has a posted
    /// answer passes.
    pub async fn check(
        &self,
        run_id: &str,
        question: &Question,
        decision: &ApprovalDecision,
        decider: &Decider,
    ) -> Result<(), ResumeError> {
        let (run, _) = self.deciding_run(run_id, question, (decision.kind(), decider)).await?;
        posting::admits(&run, question, (Some(decision), Some(decider)), false).await
    }

    /// Remembers a decision on a waiting call for later calls, as [`Run::remember`](crate::Run::remember) does. The
    /// call itself still waits.
    ///
    /// # Errors
    /// No call of the run asks the question, its call asks another one now, the decider may not decide on it, the grant
    /// needs bounds and has none, or the store failed.
    pub async fn remember(
        &self,
        run_id: &str,
        question: &Question,
        remember: Grant,
        decider: &Decider,
    ) -> Result<StoredGrant, ResumeError> {
        let (run, _) = self.asking_run(run_id, question, decider).await?;
        run.remember(question, remember, decider).await
    }

    /// Settles a call that ended as `outcome_unknown`, as [`Run::settle`](crate::Run::settle) does, from the store and
    /// without the run in memory. `tenant` and `principal` are those of the call's record: two principals can have runs
    /// with one id. A person who may decide on calls of the tool in that run may settle it. A decider of another tenant
    /// than the call's is reported to operators, also if `tenant` is that of the decider.
    ///
    /// ```
    /// use tool_runtime::Reconciled;
    /// use tool_runtime::agent::RunQueue;
    /// use tool_runtime::call::{CallId, Decider};
    /// use tool_runtime::runner::ResumeError;
    ///
    /// /// Grace looked at the bank's page: the refund was paid.
    /// async fn paid(queue: &RunQueue) -> Result<(), ResumeError> {
    ///     let grace = Decider::new("grace").tenant("acme").because("the bank's page shows it");
    ///     let result = r#"{"refund": "r-7"}"#.to_owned();
    ///     queue.settle("run-1", Some("acme"), Some("ada"), &CallId::new("c1"), Reconciled::TookEffect(result), &grace).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Run::settle`](crate::Run::settle).
    pub async fn settle(
        &self,
        run_id: &str,
        tenant: Option<&str>,
        principal: Option<&str>,
        call_id: &CallId,
        outcome: Reconciled<String>,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        let party = (principal, tenant);
        let unknown = self.runner.unknown_call(run_id, party, call_id).await?;
        let not_waiting = || ResumeError::NotWaiting(call_id.clone());
        let Some((place, unknown)) = unknown else {
            // The refusal is recorded with the call that was settled before. Nothing is settled here: only the policies
            // of the call's run know who may.
            self.runner.note_late_settlement(run_id, party, call_id, &outcome, decider).await?;
            return Err(not_waiting());
        };
        // A graph keeps no separate document: its run is held to the policies of the run that called it.
        let holder = match &unknown.record.caller {
            Caller::Graph { run, .. } => run.as_str(),
            Caller::Direct => run_id,
        };
        let stored = self.stored(holder).await?;
        let is_its =
            |stored: &StoredRun| stored.tenant == unknown.record.tenant && stored.principal == unknown.record.principal;
        let kept = kept(stored.filter(is_its).as_ref())?;
        let run = settle::run_of(&self.runner, &unknown, kept, &self.options).ok_or_else(not_waiting)?;
        Box::pin(settle::settle_found(&run, (place, unknown), outcome, decider)).await
    }

    /// As [`asking_run`](Self::asking_run), for a decision. One that no call waits for is recorded.
    async fn deciding_run(
        &self,
        run_id: &str,
        question: &Question,
        (kind, decider): (DecisionKind, &Decider),
    ) -> Result<(Run, Option<StoredRun>), ResumeError> {
        match self.asking_run(run_id, question, decider).await {
            Err(ResumeError::NotWaiting(id)) => {
                let asked = (question.call_id(), Some(question));
                late::append(&self.runner, run_id, None, asked, (kind, Some(decider))).await?;
                Err(ResumeError::NotWaiting(id))
            }
            asking => asking,
        }
    }

    /// Returns the run that asks a question, and its stored document if it has one.
    async fn asking_run(
        &self,
        run_id: &str,
        question: &Question,
        decider: &Decider,
    ) -> Result<(Run, Option<StoredRun>), ResumeError> {
        let id = question.call_id();
        let filter = RecordFilter { run_id: Some(run_id.into()), call_id: Some(id.clone()), ..RecordFilter::default() };
        let mut found = self.store().pending_calls(&filter).await?;
        // A refused decision is recorded with the call that it may have been about. Run ids can be equal in two
        // tenants.
        let place =
            |is_it: &dyn Fn(&PendingCall) -> bool| found.iter().position(|found| found.as_ref().is_ok_and(is_it));
        let asks = place(&|call| call.question() == *question);
        let asks = asks.or_else(|| place(&|call| call.tenant.as_deref() == decider.tenant_id()));
        // One that cannot be read may be the call.
        let asks = asks.or_else(|| found.iter().position(Result::is_err));
        let call = asks.map(|at| found.swap_remove(at)).transpose().map_err(StoreError::from)?;
        let call = call.ok_or_else(|| ResumeError::NotWaiting(id.clone()))?;
        let stored = self.stored(run_id).await?;
        let stored = stored.filter(|stored| stored.tenant == call.tenant && stored.principal == call.principal);
        Ok((self.run_of(&call, stored.as_ref())?, stored))
    }

    /// Returns a waiting call of a stored run.
    pub(super) async fn called(&self, stored: &StoredRun, id: &CallId) -> Result<PendingCall, ResumeError> {
        let (tenant, principal) = (stored.tenant.as_deref(), stored.principal.as_deref());
        let call = self.store().pending(&Key::waiting(Arc::clone(&stored.run_id), tenant, principal, id)).await?;
        call.ok_or_else(|| ResumeError::NotWaiting(id.clone()))
    }

    pub(super) fn run_of(&self, call: &PendingCall, stored: Option<&StoredRun>) -> Result<Run, ResumeError> {
        let run = posting::run_of(&self.runner, call, kept(stored)?, &self.options);
        run.ok_or_else(|| ResumeError::NotWaiting(call.call_id.clone()))
    }
}

/// Returns the snapshot of a stored run.
fn kept(stored: Option<&StoredRun>) -> Result<Option<RunSnapshot>, ResumeError> {
    // Conversations, and the tasks of an MCP server, keep the snapshot of their run under one name.
    #[derive(Deserialize)]
    struct SavedDocument {
        run: RunSnapshot,
    }
    let document = stored.map(|stored| &*stored.document).filter(|document| !document.is_empty());
    let kept = document.map(serde_json::from_str::<SavedDocument>).transpose().map_err(corrupt)?;
    Ok(kept.map(|kept| kept.run))
}
