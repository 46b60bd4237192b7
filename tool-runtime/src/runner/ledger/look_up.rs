//! Calls that nobody finishes, and the results of calls that ended unobserved.

use crate::call::{
    CallId, Cause, Delivered, Failed, Outcome, Question, SafeError, Suspension, ToolExecResult, ToolInvocationRecord,
};
use crate::media::Beside;
use crate::runner::gate::ending::Stop;
use crate::runner::report::telemetry;
use crate::runner::waiting::comparison;
use crate::runner::waiting::comparison::Purpose;
use crate::runner::waiting::suspend::{Given, Reopened, reopen};
use crate::runner::{ResumeError, Run};
use crate::store::{AuditRecord, DecisionKind, PendingCall, RecordFilter, Sealed, StoreError};
use crate::tool::ToolEffect;

impl Run {
    /// Closes a call that waits, for a person or a client, because nobody will act on it. It ends as `cancelled`, or as
    /// `outcome_unknown` if a client was asked to execute a tool with effects: it may have done so.
    ///
    /// # Errors
    /// No call waits under this id, or the store failed.
    pub async fn abandon(&self, call_id: &str) -> Result<ToolExecResult, ResumeError> {
        let effect = |pending: &PendingCall| match pending.suspension {
            Suspension::Approval if pending.graph.as_ref().is_some_and(|graph| graph.begun) => {
                ToolEffect::ExternalSideEffect
            }
            Suspension::Approval => ToolEffect::ReadOnly,
            // A tool that is gone may have had any.
            Suspension::Client => self.effect_of(pending.tool.as_str()).unwrap_or(ToolEffect::ExternalSideEffect),
        };
        let given =
            Given { purpose: Purpose::Close(None), kind: DecisionKind::Abandoned, decider: None, question: None };
        match reopen(self, &CallId::new(call_id), given, |pending, _| Ok(effect(pending))).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, effect) => {
                let left = open.graph();
                let stop = if effect == ToolEffect::ReadOnly {
                    Stop::new(Outcome::Cancelled).message("Nobody acted on the call. It did not run.")
                } else {
                    open.at_client();
                    let mut stop = Stop::new(Cause::Cancelled.outcome(effect));
                    stop.cause = Some(Cause::Cancelled);
                    stop
                };
                let result = Box::pin(open.finish_waiting(Err(stop))).await?;
                self.leave(result.call_id(), left).await;
                Ok(result)
            }
        }
    }

    /// Returns the result of a call of this run for a caller whose own future was dropped. It is read from the call's
    /// record, which does not hold what only the model may see.
    ///
    /// A call without a record whose tool has effects and had begun, in this process, in the one that the run was
    /// restored from, or by the ledger's account in any other, is `outcome_unknown`. `None` if it has no record and no
    /// effect of it can have begun. Records of another principal or tenant are not looked at.
    ///
    /// A call whose process is gone is closed as `outcome_unknown`, unless its tool may reconcile or repeat it: that one
    /// stays open for [`exec`](Self::exec) of the same call, for [`recover`](Self::recover), for a restored conversation,
    /// or for a [sweep](crate::ToolRunner::sweep).
    ///
    /// # Errors
    /// The store failed.
    pub async fn recorded(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        let unread = |error| telemetry::store_unread(self, error);
        let known = self.look_up(call_id, None, |_| true).await.map_err(unread)?;
        if let Some(Some(ended)) = known {
            return Ok(Some(ended));
        }
        Ok((known.is_some() || self.may_have_begun(call_id)).then(|| {
            let outcome = Outcome::OutcomeUnknown;
            ToolExecResult::unfinished(call_id.clone(), outcome, true, outcome.safe_message())
        }))
    }
}

impl Run {
    /// Returns the result of a call that another process may have handed to the gate, if the gate need not be asked about
    /// it: it has a record, or a decision on it was carried out. Otherwise the gate runs it, or takes it over if the
    /// ledger says that it began.
    pub(crate) async fn ended_before(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        let filter = RecordFilter::call(self.id(), call_id.clone());
        let records = self.shared().store.records(&filter).await;
        let records = records.map_err(|error| telemetry::store_unread(self, error))?;
        if self.are_several(call_id, &records).await? {
            // The gate reads the arguments, and looks for the one that it is.
            return Ok(None);
        }
        let (mut ended, mut decided) = (false, false);
        for sealed in &records {
            match &sealed.record {
                AuditRecord::Call(record) => {
                    ended |= comparison::owns(self, record.principal.as_deref(), record.tenant.as_deref());
                }
                AuditRecord::Decision(record) if record.refused.is_none() => {
                    decided |= comparison::owns(self, record.principal.as_deref(), record.tenant.as_deref());
                }
                AuditRecord::Decision(_) => {}
            }
        }
        if decided && let Some(Some(result)) = self.go_on(call_id).await? {
            return Ok(Some(result));
        }
        if ended || decided { self.recorded(call_id).await } else { Ok(None) }
    }

    /// Whether the id stands for several calls that ran, in processes that both had the run.
    async fn are_several(&self, call_id: &CallId, records: &[Sealed]) -> Result<bool, StoreError> {
        let open = self.all_unfinished(|record| record.tool_call_id == *call_id).await?;
        let ran = records.iter().filter_map(|sealed| sealed.record.as_call()).filter(|record| {
            record.executed && comparison::owns(self, record.principal.as_deref(), record.tenant.as_deref())
        });
        Ok(open.len() + ran.count() > 1)
    }

    /// Looks up a call, of a tool if one is named, with a record that `is_wanted`. `None` if nothing is known of it,
    /// `Some(None)` if it began and no end is recorded. Such a call is closed if it cannot be recovered.
    ///
    /// A call that was refused, or that waited and was not approved, may still have begun in a process that required no
    /// approval.
    pub(in crate::runner) async fn look_up(
        &self,
        call_id: &CallId,
        tool: Option<&str>,
        is_wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Option<Option<ToolExecResult>>, StoreError> {
        // If the id belongs to several calls, the refusal of one is no evidence about the others.
        if let Some(record) = self.own_record(call_id, |record| record.executed && is_wanted(record)).await? {
            return Ok(Some(Some(result(record))));
        }
        let open = self.unfinished(call_id, tool).await?;
        let unfinished = open.is_some();
        if let Some(open) = open.filter(|open| !open.entry.recoverable) {
            self.close_abandoned(&open).await?;
        }
        // It may have ended, or was closed, between the two.
        let record = self.own_record(call_id, &is_wanted).await?.filter(|record| record.executed || !unfinished);
        Ok((unfinished || record.is_some()).then(|| record.map(result)))
    }

    /// The last record under a call's id that is this run's own and that `is_wanted`.
    async fn own_record(
        &self,
        call_id: &CallId,
        is_wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Option<ToolInvocationRecord>, StoreError> {
        let records = self.shared().store.calls(&RecordFilter::call(self.id(), call_id.clone())).await?;
        Ok(records.into_iter().rev().find(|record| {
            comparison::owns(self, record.principal.as_deref(), record.tenant.as_deref()) && is_wanted(record)
        }))
    }
}

/// What the caller of a call reads of its record.
pub(in crate::runner) fn result(record: ToolInvocationRecord) -> ToolExecResult {
    let (id, executed) = (record.tool_call_id, record.executed);
    let result = match record.result {
        Some(shown) if record.outcome == Outcome::Ok => {
            // A record holds no bytes of files.
            let beside = Beside::recorded(record.media.len(), record.left_out);
            ToolExecResult::delivered(id, executed, Delivered { beside, ..Delivered::shown(shown) })
        }
        prepared if record.outcome.is_suspension() => {
            let question = Box::new(Question::unknown(&id));
            ToolExecResult::suspended(id, record.outcome, prepared, question)
        }
        _ => {
            let safe_message = record.safe_message.unwrap_or_else(|| record.outcome.safe_message().to_owned());
            let error = SafeError { tool_code: record.tool_code, ..SafeError::new(record.outcome, &safe_message) };
            ToolExecResult::failed(id, executed, Failed { error, concealed: false, detail: None })
        }
    };
    result.with_intervention(record.intervention)
}
