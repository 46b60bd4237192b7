//! Client tools: a prepared payload goes out, and the client's untrusted result comes back, once.

use crate::call::{Outcome, ToolExecResult};
use crate::json::{self, Limits};
use crate::runner::deliver::deliver;
use crate::runner::ending::{Ending, Stop};
use crate::runner::open::OpenCall;
use crate::runner::suspend::{Purpose, Reopened, reopen};
use crate::runner::{ResumeError, Run, stages};
use crate::store::{PendingCall, Suspension};

impl Run {
    /// Finishes a call that waits for its client with the client's result, a JSON value as text. It counts once.
    ///
    /// The value is untrusted: it may be as long as the tool's result may be (32 KiB by default), is validated against
    /// the tool's `client_result`, projected, and puts the tool's labels on the run. The run is compared with the call
    /// as by [`Run::resume`].
    ///
    /// # Errors
    /// No call waits for a client under this id, or the store failed. A value that does not fit is a result, not an
    /// error.
    pub async fn client_result(&self, call_id: &str, value: &str) -> Result<ToolExecResult, ResumeError> {
        match reopen(self, call_id, Purpose::Resume(Suspension::Client)).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, pending) => {
                let ended = answered(&mut open, &pending, value);
                Ok(open.finish(ended).await)
            }
        }
    }

    /// Closes a call that waits for its client because the client could not execute it.
    ///
    /// # Errors
    /// No call waits for a client under this id, or the store failed.
    pub async fn client_failed(&self, call_id: &str) -> Result<ToolExecResult, ResumeError> {
        match reopen(self, call_id, Purpose::Close(Some(Suspension::Client))).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, _) => {
                open.begin();
                let stop = Stop::new(Outcome::ExecutionError).message("The client could not execute the call.");
                Ok(open.finish(Err(stop)).await)
            }
        }
    }
}

fn answered(open: &mut OpenCall, pending: &PendingCall, value: &str) -> Result<Ending, Stop> {
    open.begin();
    let shared = open.run().shared();
    let entry = shared.catalog.entry(pending.tool.as_str()).ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    let answer = entry.answer.as_ref().ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    if pending.is_expired(shared.clock.now()) {
        return Err(Stop::new(Outcome::ApprovalExpired));
    }
    let limit = entry.result_bytes(&shared.policy);
    let limits = Limits { bytes: limit, ..Limits::default() };
    let tree = json::parse_value(value, &limits).map_err(|error| {
        Stop::new(if error.kind.is_limit() { Outcome::ResultTooLarge } else { Outcome::OutputInvalid })
    })?;
    let invalid = || Stop::new(Outcome::OutputInvalid);
    let violations = shared.compiled.check_answer(entry, &tree).ok_or_else(invalid)?;
    if !violations.is_empty() {
        return Err(invalid().errors(violations));
    }
    let projected = answer.projector.project(&tree, limit).map_err(|error| stages::unprojected(&error))?;
    Ok(Ending::Delivered(deliver(open.run(), entry, projected, None)))
}
