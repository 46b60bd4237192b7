//! Decisions on waiting calls of any run in a store.

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
    /// Decides a waiting call. If a worker or an MCP server continues the run, the decision is posted to the run. If an
    /// application made the call itself ([`Run::exec`](crate::Run::exec)), the decision is carried out in this process.
    /// The `approvals` command uses this method.
    ///
    /// Returns the result of a decision that was carried out here, or `None` if the decision was posted. After the
    /// result `approval_mismatch` the call still waits. If the call needs several approvals, this method stores every
    /// approval but the last with the call, for every kind of run, and returns the result of the approval
    /// ([`ToolExecResult::approvals`]).
    ///
    /// # Errors
    /// No call of the run asks the question, a post to the run answers it already, or the decider belongs to another
    /// tenant ([`ResumeError::NotWaiting`]); the decider may not decide ([`ResumeError::NotAllowed`]); an engine for
    /// durable execution continues the run, and takes decisions itself ([`ResumeError::Engine`]); or the store failed.
    /// A process that has the tool and the policy of the call also refuses edited arguments or a value that do not fit
    /// them ([`ResumeError::Invalid`]), and a decision on a call that changed ([`ResumeError::Mismatch`]).
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
    /// posted, or none is. Each decision names its run, and is checked as in [`decide`](Self::decide). A run takes up
    /// to 64 posted decisions one by one, and more than 64 in small groups.
    ///
    /// The process that carries out a decision checks it again. It refuses a decision that no longer fits, such as an
    /// approval of a call whose precondition has changed; the other decisions take effect.
    ///
    /// Returns an item for each decision: `None` for a posted decision, or the result of an approval whose call needs
    /// more approvals.
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
    /// As [`decide`](Self::decide), with the question of the refused decision, or `None` if the store failed. Also: a
    /// question occurs twice ([`ResumeError::NotWaiting`]); an application made one of the calls itself, so it has to
    /// be decided alone ([`ResumeError::UnknownRun`]); or there are more than 256 decisions ([`StoreError::Full`]). In
    /// each case nothing is posted, and no approval is stored.
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

    /// Checks whether a decider may answer a question of a run, by the runner's policy and every policy of the run.
    /// Nothing is recorded, but a decider of another tenant is reported to operators.
    ///
    /// # Errors
    /// As [`decide`](Self::decide), except that earlier posts are not checked.
    pub async fn may_decide(&self, run_id: &str, question: &Question, decider: &Decider) -> Result<(), ResumeError> {
        let (run, _) = self.asking_run(run_id, question, decider).await?;
        run.may_decide(question, decider).await
    }

    /// Checks a decision as [`decide`](Self::decide) does, without carrying it out or posting it. Call it before you
    /// deliver a decision in another way, such as with a promise of a workflow engine. The workflow checks the decision
    /// again, but without this check a person who may not decide could fill the engine's journal and block other
    /// deciders. A refused decision is recorded.
    ///
    /// # Errors
    /// As [`decide`](Self::decide). Earlier posts are not checked, so a question that has a posted answer passes.
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
    /// No call of the run asks the question, the call now asks a different question, the decider may not decide the
    /// call, the grant needs bounds and has none, or the store failed.
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

    /// Settles a call that ended as `outcome_unknown`, as [`Run::settle`](crate::Run::settle) does, for a run that is
    /// only in the store. `tenant` and `principal` are those in the call's record, because two principals can have runs
    /// with one id. A person who may decide calls of the tool in that run may settle the call. A decider of another
    /// tenant than the call's is reported to operators, even if `tenant` names the decider's tenant.
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
            // If the call was settled before, the refusal is recorded with it.
            self.runner.note_late_settlement(run_id, party, call_id, &outcome, decider).await?;
            return Err(not_waiting());
        };
        // The run of a graph has no document. Its policies are in the document of the run that called the graph.
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

    /// As [`asking_run`](Self::asking_run), for a decision. Records the decision if no call waits for it.
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
        // Run ids can be equal in two tenants. If no call asks the question, take the call of the decider's tenant,
        // with which the refused decision is recorded.
        let place =
            |is_it: &dyn Fn(&PendingCall) -> bool| found.iter().position(|found| found.as_ref().is_ok_and(is_it));
        let asks = place(&|call| call.question() == *question);
        let asks = asks.or_else(|| place(&|call| call.tenant.as_deref() == decider.tenant_id()));
        // A call that cannot be read might be the right one, so return its error.
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
    // Conversations and the tasks of an MCP server both have the snapshot of their run in this field.
    #[derive(Deserialize)]
    struct SavedDocument {
        run: RunSnapshot,
    }
    let document = stored.map(|stored| &*stored.document).filter(|document| !document.is_empty());
    let kept = document.map(serde_json::from_str::<SavedDocument>).transpose().map_err(corrupt)?;
    Ok(kept.map(|kept| kept.run))
}
