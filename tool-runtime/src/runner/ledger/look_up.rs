//! Looks up the results of calls that ended in another process or after their future was dropped.

use crate::call::{CallId, Delivered, Failed, Outcome, Question, SafeError, ToolExecResult, ToolInvocationRecord};
use crate::media::Attachments;
use crate::runner::Run;
use crate::runner::gate::deliver::adopt;
use crate::runner::ledger::client::LedgerClient;
use crate::store::{RecordFilter, Store as _, StoreError};

impl LedgerClient<'_> {
    /// See [`Run::recorded`](crate::runner::Run::recorded).
    pub(in crate::runner) async fn recorded(self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        let unread = |error| self.0.store_unread(error);
        let known = self.look_up(call_id, None, |_| true).await.map_err(unread)?;
        if let Some(Some(ended)) = known {
            return Ok(Some(ended));
        }
        Ok((known.is_some() || self.0.may_have_begun(call_id)).then(|| {
            let outcome = Outcome::OutcomeUnknown;
            ToolExecResult::unfinished(call_id.clone(), outcome, true, outcome.safe_message())
        }))
    }

    /// Looks up the result of a call whose record `is_wanted` accepts; with `tool`, only of this tool. `None` if the
    /// store does not contain the call; `Some(None)` if it began and no end is recorded. In that case, also closes a
    /// call that no process can recover.
    ///
    /// A call that this process refused or suspended can have begun in another process, whose policy required no
    /// approval.
    pub(in crate::runner) async fn look_up(
        self,
        call_id: &CallId,
        tool: Option<&str>,
        is_wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Option<Option<ToolExecResult>>, StoreError> {
        // If the id belongs to several calls, the refusal of one is no evidence about the others.
        if let Some(record) = self.own_record(call_id, |record| record.executed && is_wanted(record)).await? {
            return Ok(Some(Some(adopted(self.0, record))));
        }
        let open = self.unfinished(call_id, tool).await?;
        let unfinished = open.is_some();
        if let Some(open) = open.filter(|open| !open.entry.recoverable) {
            self.close_abandoned(&open).await?;
        }
        // The call may have ended, or may have been closed, between the two reads.
        let record = self.own_record(call_id, &is_wanted).await?.filter(|record| record.executed || !unfinished);
        Ok((unfinished || record.is_some()).then(|| record.map(|record| adopted(self.0, record))))
    }

    /// Returns the latest record of the call id that belongs to this run's party and that `is_wanted` accepts.
    pub(in crate::runner) async fn own_record(
        self,
        call_id: &CallId,
        is_wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Option<ToolInvocationRecord>, StoreError> {
        let records = self.0.shared().store.calls(&RecordFilter::call(self.0.id(), call_id.clone())).await?;
        Ok(records
            .into_iter()
            .rev()
            .find(|record| self.0.owns(record.principal.as_deref(), record.tenant.as_deref()) && is_wanted(record)))
    }
}

/// Returns the result of a call from its record, and applies its labels and its evidence to the run.
pub(in crate::runner) fn adopted(run: &Run, record: ToolInvocationRecord) -> ToolExecResult {
    let tool = record.name.clone();
    let result = result(record);
    adopt(run, &tool, &result);
    result
}

/// Converts the record of a call to the result for its caller.
pub(in crate::runner) fn result(record: ToolInvocationRecord) -> ToolExecResult {
    let (id, executed) = (record.tool_call_id, record.executed);
    let result = match record.result {
        Some(shown) if record.outcome == Outcome::Ok => {
            // A record contains no file bytes.
            let attachments = Attachments::recorded(record.media.len(), record.left_out);
            ToolExecResult::delivered(id, executed, Delivered { attachments, ..Delivered::shown(shown) })
        }
        prepared if record.outcome.is_suspension() => {
            let question = Question::unknown(&id);
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
