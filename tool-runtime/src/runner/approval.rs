//! Approvals: a person decides on a call that waits. Everything is checked again, and it happens once.

use std::fmt;

use crate::call::{Outcome, ToolCall, ToolExecResult};
use crate::json;
use crate::runner::deliver::deliver;
use crate::runner::ending::{Ending, MAX_MESSAGE_BYTES, Stop, sentence};
use crate::runner::open::OpenCall;
use crate::runner::stages;
use crate::runner::suspend::{Purpose, Reopened, reopen};
use crate::runner::{ResumeError, Run, exec};
use crate::store::{PendingCall, Suspension};

/// What a person decides on a call that waits.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// It may run as it is.
    Approve,
    /// It may run with these arguments, a JSON object as text. They are validated and decided again.
    ApproveEdited(String),
    /// It does not run. The model reads the message, of which at most 2,048 bytes are kept.
    Deny(Option<String>),
    /// It does not run; this JSON value takes the place of the tool's output and is projected like it.
    Respond(String),
    /// Nobody decided in time.
    Expire,
}

impl fmt::Debug for ApprovalDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "Approve",
            Self::ApproveEdited(_) => "ApproveEdited(..)",
            Self::Deny(_) => "Deny(..)",
            Self::Respond(_) => "Respond(..)",
            Self::Expire => "Expire",
        })
    }
}

impl Run {
    /// Finishes a call that waits for an approval, once: a second decision is refused.
    ///
    /// The call has to belong to the run's principal and tenant. To run it, or to answer in its place, the policy, the
    /// tool's definition and the arguments must be those that were suspended, and the run may have no role and no tool
    /// that the call's run did not have; otherwise the result is `approval_mismatch` and the call still waits. It can be
    /// denied, expired or [abandoned](Run::abandon) in any case.
    ///
    /// # Errors
    /// No call waits for an approval under this id, or the store failed. A decision that comes too late or does not fit
    /// is a result, not an error.
    pub async fn resume(&self, call_id: &str, decision: ApprovalDecision) -> Result<ToolExecResult, ResumeError> {
        let purpose = match decision {
            ApprovalDecision::Deny(_) | ApprovalDecision::Expire => Purpose::Close(Some(Suspension::Approval)),
            _ => Purpose::Resume(Suspension::Approval),
        };
        match reopen(self, call_id, purpose).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, pending) => {
                let ended = decided(&mut open, &pending, decision).await;
                Ok(open.finish(ended).await)
            }
        }
    }
}

async fn decided(open: &mut OpenCall, pending: &PendingCall, decision: ApprovalDecision) -> Result<Ending, Stop> {
    if pending.is_expired(open.run().shared().clock.now()) {
        return Err(Stop::new(Outcome::ApprovalExpired));
    }
    match decision {
        ApprovalDecision::Expire => Err(Stop::new(Outcome::ApprovalExpired)),
        ApprovalDecision::Deny(None) => Err(Stop::new(Outcome::ApprovalDenied)),
        ApprovalDecision::Deny(Some(message)) => {
            Err(Stop::new(Outcome::ApprovalDenied).message(sentence(&message, MAX_MESSAGE_BYTES)))
        }
        ApprovalDecision::Respond(value) => respond(open, pending, &value),
        ApprovalDecision::Approve => {
            let frozen = pending.arguments.as_str().to_owned();
            run_approved(open, pending, frozen).await
        }
        ApprovalDecision::ApproveEdited(arguments) => run_approved(open, pending, arguments).await,
    }
}

/// Takes the arguments through the whole first half of the gate again, and then runs them.
async fn run_approved(open: &mut OpenCall, pending: &PendingCall, arguments: String) -> Result<Ending, Stop> {
    let edited = arguments != pending.arguments.as_str();
    let call = ToolCall::text(pending.call_id.clone(), pending.tool.as_str(), arguments);
    let admitted = stages::admit(open, &call)?;
    let read = stages::hydrate(open, Ok(admitted), call);
    let hydrated = open.draft.read(read)?;
    if !edited && hydrated.digest() != pending.argument_digest {
        return Err(Stop::new(Outcome::ApprovalMismatch));
    }
    stages::freeze(open, &hydrated);
    let permit = stages::decide_approved(open, hydrated)?;
    exec::from_permit(open, permit).await
}

/// A person answers in the tool's place. The value is checked and projected like the tool's own output.
fn respond(open: &OpenCall, pending: &PendingCall, value: &str) -> Result<Ending, Stop> {
    let shared = open.run().shared();
    let entry = shared.catalog.entry(pending.tool.as_str()).ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    let projector = match &entry.answer {
        Some(answer) => Some(&answer.projector),
        None => shared.compiled.projector(entry),
    };
    let projector = projector.ok_or_else(|| Stop::new(Outcome::RedactionFailed))?;
    // The outcomes' own sentences say that the tool ran.
    let withheld = |stop: Stop| stop.message("The value given in the tool's place does not fit. The tool did not run.");
    let tree =
        json::parse_value(value, &json::Limits::UNBOUNDED).map_err(|_| withheld(Stop::new(Outcome::OutputInvalid)))?;
    let limit = entry.result_bytes(&shared.policy);
    let projected = projector.project(&tree, limit).map_err(|error| withheld(stages::unprojected(&error)))?;
    Ok(Ending::Delivered(deliver(open.run(), entry, projected, None)))
}
