//! Calls that nobody finishes, and the results of calls that ended while nobody looked.

use crate::call::{CallId, Delivered, Failed, Outcome, SafeError, ToolExecResult, ToolInvocationRecord};
use crate::runner::Run;
use crate::runner::approval::{NotPending, reopen};
use crate::runner::stop::Stop;
use crate::store::{RecordFilter, StoreError, Suspension};

impl Run {
    /// Closes a call that waits for its client because the client could not execute it.
    ///
    /// # Errors
    /// Nothing waits for a client under this id.
    pub async fn client_failed(&self, call_id: &str) -> Result<ToolExecResult, NotPending> {
        let (mut open, _) = reopen(self, call_id, Some(Suspension::Client)).await?;
        open.executed = true;
        let stop = Stop::new(Outcome::ExecutionError).message("The client could not execute the call.");
        Ok(open.finish(Err(stop)).await)
    }

    /// Closes a call that waits, for a person or a client, because nobody will act on it. It ends as `cancelled`.
    ///
    /// # Errors
    /// Nothing waits under this id.
    pub async fn abandon(&self, call_id: &str) -> Result<ToolExecResult, NotPending> {
        let (open, _) = reopen(self, call_id, None).await?;
        let stop = Stop::new(Outcome::Cancelled).message("Nobody acted on the call. It did not run.");
        Ok(open.finish(Err(stop)).await)
    }

    /// The result of a call of this run that has ended, as its record tells it: for a caller whose own future was
    /// dropped. What only the model may see is not in records.
    ///
    /// # Errors
    /// The store failed.
    pub async fn recorded(&self, call_id: &CallId) -> Result<Option<ToolExecResult>, StoreError> {
        let filter = RecordFilter::call(self.id(), call_id.clone());
        let record = self.0.shared.store.records(&filter).await?.pop();
        Ok(record.map(result))
    }
}

fn result(record: ToolInvocationRecord) -> ToolExecResult {
    let (id, executed) = (record.tool_call_id, record.executed);
    match record.result {
        Some(shown) if record.outcome == Outcome::Ok => {
            ToolExecResult::delivered(id, executed, Delivered { shown, model: None, warning: None })
        }
        prepared if record.outcome.is_suspension() => ToolExecResult::suspended(id, record.outcome, prepared),
        _ => {
            let safe_message = record.safe_message.unwrap_or_else(|| record.outcome.safe_message().to_owned());
            let error =
                SafeError { error_code: record.outcome, tool_code: record.tool_code, safe_message, errors: Vec::new() };
            ToolExecResult::failed(id, executed, Failed { error, concealed: false, detail: None })
        }
    }
}
