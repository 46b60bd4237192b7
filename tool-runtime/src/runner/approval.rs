//! Approvals: a person decides on a call that waits. Everything is checked again, and it happens once.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{
    ArgumentChangeKind, Decider, Intervention, Mismatch, Outcome, Question, RecordedArguments, Suspension, ToolCall,
    ToolExecResult,
};
use crate::hydrate::Hydrated;
use crate::json;
use crate::redact::{Projected, changes};
use crate::runner::deliver::delivered;
use crate::runner::draft::{Refused, Shown};
use crate::runner::ending::{Ending, MAX_MESSAGE_BYTES, Stop};
use crate::runner::open::OpenCall;
use crate::runner::recover::run_approved;
use crate::runner::stages;
use crate::runner::suspend::{Given, Reopened, reopen};
use crate::runner::waiting::{Purpose, refused};
use crate::runner::{CallClient, Continued, ResumeError, Run, graph, waiting};
use crate::store::{DecisionKind, DecisionRecord, PendingCall};
use crate::text::sentence;

/// What a person decides on a call that waits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// It may run as it is.
    Approve,
    /// It may run with these arguments, a JSON object as text. They are validated and decided again; until they fit, the
    /// call waits.
    ApproveEdited(String),
    /// It does not run. The model reads the message, of which at most 2,048 bytes are kept.
    Deny(Option<String>),
    /// It does not run; this JSON value takes the place of the tool's output and is projected like it.
    Respond(String),
}

impl ApprovalDecision {
    /// Returns the kind of the decision, as records name it.
    #[must_use]
    pub const fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve => DecisionKind::Approved,
            Self::ApproveEdited(_) => DecisionKind::Edited,
            Self::Deny(_) => DecisionKind::Denied,
            Self::Respond(_) => DecisionKind::Answered,
        }
    }
}

impl fmt::Debug for ApprovalDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "Approve",
            Self::ApproveEdited(_) => "ApproveEdited(..)",
            Self::Deny(_) => "Deny(..)",
            Self::Respond(_) => "Respond(..)",
        })
    }
}

impl Run {
    /// Finishes a call that waits for an approval, once: a second decision is refused.
    ///
    /// The decision answers the question that was shown: that of the [result](ToolExecResult::question), the event or the
    /// [document](PendingCall::question) of the call. If the call asks another one now, as a graph does with each of its
    /// calls, the decision is refused.
    ///
    /// The policy says who may decide: somebody of the run's tenant, with a role that it asks for, and not the principal
    /// of the run unless `own_calls` is set. The attempt of anybody else is recorded and changes nothing.
    ///
    /// The call has to belong to the run's principal and tenant. To run it, or to answer in its place, the policy, the
    /// tool's definition and the arguments must be those that were suspended, and the run may have no role and no tool
    /// that the call's run did not have. Edited arguments must fit the schema and be allowed by the policy, and an answer
    /// must fit the output schema. Otherwise the result is `approval_mismatch` with what is wrong
    /// ([`SafeError::mismatch`](crate::call::SafeError::mismatch)), which is recorded
    /// ([`DecisionRecord`](crate::store::DecisionRecord)), and the call still waits: correct the decision and try
    /// again. The call can be denied, [expired](Run::expire) or [abandoned](Run::abandon) in any case.
    ///
    /// # Errors
    /// No such call waits for an approval, the decider may not decide, or the store failed. A decision that comes too late
    /// or does not fit, or that answers another question, is a result, not an error.
    pub async fn resume(
        &self,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        self.resume_for(None, question, decision, decider).await
    }

    /// As [`resume`](Self::resume), but a tool that begins can use the client at the other end of a connection.
    pub(crate) async fn resume_for(
        &self,
        client: Option<Box<CallClient>>,
        question: &Question,
        decision: ApprovalDecision,
        decider: &Decider,
    ) -> Result<ToolExecResult, ResumeError> {
        let purpose = match decision {
            ApprovalDecision::Deny(_) => Purpose::Close(Some(Suspension::Approval)),
            _ => Purpose::Resume(Suspension::Approval),
        };
        let given = Given { purpose, kind: decision.kind(), decider: Some(decider), question: Some(question) };
        // The transaction that takes the call compares it with this read.
        let compared =
            |pending: &PendingCall, record: &mut DecisionRecord| read(self, pending, decision, decider, record);
        match reopen(self, question.call_id(), given, compared).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, decided) => {
                open.client = client;
                let graph = open.graph();
                let ended = Box::pin(carry_out(&mut open, decided)).await;
                // A graph that does not continue ends here, and so do its calls.
                let left = graph.filter(|_| open.claim.is_some());
                let ended = match &left {
                    Some(graph) => ended.map_err(|stop| graph::stop(&mut open, graph, stop)),
                    None => ended,
                };
                let result = Box::pin(open.finish_waiting(ended)).await?;
                self.leave(result.call_id(), left).await;
                Ok(result)
            }
        }
    }

    /// Closes a call that waits for an approval because nobody decided in time. It ends as `approval_expired`.
    ///
    /// # Errors
    /// No such call waits for an approval, or the store failed. A call that asks another question now is a result that
    /// does not fit, and still waits.
    pub async fn expire(&self, question: &Question) -> Result<ToolExecResult, ResumeError> {
        let purpose = Purpose::Close(Some(Suspension::Approval));
        let given = Given { purpose, kind: DecisionKind::Expired, decider: None, question: Some(question) };
        match reopen(self, question.call_id(), given, |_, _| Ok(())).await? {
            Reopened::Mismatch(result) => Ok(result),
            Reopened::Open(mut open, ()) => {
                let left = open.graph();
                let mut stop = Stop::new(Outcome::ApprovalExpired);
                if let Some(graph) = &left {
                    stop = graph::stop(&mut open, graph, stop);
                }
                let result = Box::pin(open.finish_waiting(Err(stop))).await?;
                self.leave(result.call_id(), left).await;
                Ok(result)
            }
        }
    }
}

/// A decision that fits its call.
enum Decided {
    /// It runs, with these arguments, which a person may have changed; a graph continues where it waited.
    Run(Box<Hydrated>, Option<Box<Continued>>, Option<Intervention>),
    /// This value takes the place of its output.
    Respond(Projected),
    /// It does not run.
    Refuse(Stop),
}

/// Reads a decision before its call is claimed. What does not fit leaves the call waiting.
fn read(
    run: &Run,
    pending: &PendingCall,
    decision: ApprovalDecision,
    decider: &Decider,
    record: &mut DecisionRecord,
) -> Result<Decided, Refused> {
    let is_late = pending.is_expired(run.shared().clock.now());
    if is_late {
        record.decision = DecisionKind::TooLate;
    }
    if let Some(graph) = &pending.graph {
        let continued = Continued { pending: (**graph).clone(), decision, decider: decider.clone() };
        return within(run, pending, continued, record);
    }
    if is_late {
        return Ok(Decided::Refuse(Stop::new(Outcome::ApprovalExpired)));
    }
    match decision {
        ApprovalDecision::Deny(None) => Ok(Decided::Refuse(Stop::new(Outcome::ApprovalDenied))),
        ApprovalDecision::Deny(Some(message)) => {
            let message = sentence(&message, MAX_MESSAGE_BYTES);
            Ok(Decided::Refuse(Stop::new(Outcome::ApprovalDenied).message(message)))
        }
        ApprovalDecision::Respond(value) => respond(run, pending, &value),
        ApprovalDecision::Approve => approved(run, pending, pending.arguments.as_str().to_owned(), record),
        ApprovalDecision::ApproveEdited(arguments) => approved(run, pending, arguments, record),
    }
}

/// A decision on a call that a graph made: the graph takes it, and continues. Whatever it is, the graph reads it, so that
/// one that has begun is not broken off.
fn within(
    run: &Run,
    pending: &PendingCall,
    continued: Continued,
    record: &mut DecisionRecord,
) -> Result<Decided, Refused> {
    let denies = matches!(continued.decision, ApprovalDecision::Deny(_));
    let compared = if denies { waiting::compare(run, pending) } else { Ok(()) };
    match compared.and_then(|()| approved(run, pending, pending.arguments.as_str().to_owned(), record)) {
        Ok(Decided::Run(hydrated, ..)) => Ok(Decided::Run(hydrated, Some(Box::new(continued)), None)),
        // A graph that may not continue can still be denied.
        Err(_) if denies => Ok(Decided::Refuse(Stop::new(Outcome::ApprovalDenied))),
        decided => decided,
    }
}

/// Hydrates the arguments again, and asks the policy about those that a person changed: a person can correct them as long
/// as the call waits.
fn approved(
    run: &Run,
    pending: &PendingCall,
    arguments: String,
    record: &mut DecisionRecord,
) -> Result<Decided, Refused> {
    let edited = arguments != pending.arguments.as_str();
    let call = ToolCall::text(pending.call_id.clone(), pending.tool.as_str(), arguments);
    let hydrated = stages::hydrate_waiting(run, pending, call)?;
    if edited {
        record.edited_digest = Some(run.shared().digests.of(hydrated.digest()));
        let sensitive = &hydrated.frozen.entry.spec.sensitive;
        record.changes =
            changes(ArgumentChangeKind::Edited, pending.arguments.as_str(), hydrated.frozen.canonical(), sensitive);
        record.arguments = RecordedArguments::Masked(hydrated.frozen.decided_on());
    }
    if !edited && hydrated.digest() != pending.argument_digest {
        let mut refused = refused(pending, Mismatch::Arguments);
        refused.stop = refused.stop.reason("the arguments are read differently", None);
        return Err(refused);
    }
    if stages::is_denied(run, &hydrated) {
        // The same policy let the call wait: what it says now depends on the arguments or on the run.
        let gained = run.labels().iter().any(|label| !pending.labels.contains(label));
        let stop = match edited {
            true => Stop::new(Outcome::PolicyDenied)
                .message("The policy does not allow the edited arguments. The call still waits."),
            // The server of a discovered tool publishes another definition since.
            false if hydrated.frozen.entry.is_drifted() => Stop::mismatch(Mismatch::Definition),
            false if gained => Stop::mismatch(Mismatch::Labels),
            false => Stop::mismatch(Mismatch::Roles),
        };
        let shown = Shown::Masked(hydrated.frozen.decided_on());
        return Err(Refused { stop, shown });
    }
    let edited = (!record.changes.is_empty()).then(|| Intervention::Edited(record.changes.clone()));
    Ok(Decided::Run(Box::new(hydrated), None, edited))
}

/// A person answers in the tool's place. The value is checked and projected like the tool's own output.
fn respond(run: &Run, pending: &PendingCall, value: &str) -> Result<Decided, Refused> {
    let shared = run.shared();
    let unfit = |mut stop: Stop| {
        // The outcomes' own sentences say that the tool ran.
        stop = stop.message("The value given in the tool's place does not fit. The call still waits.");
        Refused { stop, shown: Shown::Masked(pending.shown_arguments.clone()) }
    };
    let entry = shared.catalog.entry(pending.tool.as_str());
    let entry = entry.ok_or_else(|| unfit(Stop::new(Outcome::ApprovalMismatch)))?;
    let projector = shared.compiled.shown(entry).ok_or_else(|| unfit(Stop::new(Outcome::RedactionFailed)))?;
    let tree =
        json::parse_value(value, &json::Limits::UNBOUNDED).map_err(|_| unfit(Stop::new(Outcome::OutputInvalid)))?;
    let limit = entry.result_bytes(&run.policy().limits_of(entry.spec.name.as_str()));
    let projected = projector.project(&tree, limit).map_err(|error| unfit(stages::unprojected(&error)))?;
    Ok(Decided::Respond(projected))
}

/// Takes an approved call through the rest of the gate.
async fn carry_out(open: &mut OpenCall, decided: Decided) -> Result<Ending, Stop> {
    match decided {
        Decided::Refuse(stop) => Err(stop),
        Decided::Respond(projected) => {
            open.draft.intervened(Intervention::Answered);
            Ok(Ending::Delivered(delivered(projected)))
        }
        Decided::Run(hydrated, continued, edited) => {
            open.continued = continued;
            edited.into_iter().for_each(|edited| open.draft.intervened(edited));
            run_approved(open, *hydrated).await
        }
    }
}

#[cfg(test)]
mod tests;
