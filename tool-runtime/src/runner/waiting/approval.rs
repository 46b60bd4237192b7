//! Approvals: carries out a person's decision on a waiting call. All checks are repeated, and the call is finished
//! once.

use std::sync::Arc;

use crate::call::{
    ArgumentChangeKind, Cause, Decider, DecisionError, Intervention, Outcome, PendingGraph, Question,
    RecordedArguments, Suspension, ToolCall, ToolExecResult,
};
use crate::contain::discard;
use crate::hydrate::Hydrated;
use crate::json;
use crate::redact::{ProjectError, Projected, changes};
use crate::runner::ApprovalDecision;
use crate::runner::gate::deliver::delivered;
use crate::runner::gate::draft::{Refused, Shown};
use crate::runner::gate::ending::{Ending, MAX_MESSAGE_BYTES, Stop};
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::{self, Reader};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::orphans;
use crate::runner::ledger::recover::run_approved;
use crate::runner::waiting::comparison::{self, Purpose, refused};
use crate::runner::waiting::counting;
use crate::runner::waiting::suspend::{self, Given, Reopened, reopen};
use crate::runner::waiting::world;
use crate::runner::{CallClient, Continued, ResumeError, Run};
use crate::store::waiting::{Approval, Counted, Uncounted};
use crate::store::{DecisionKind, DecisionRecord, PendingCall};
use crate::text::sentence;

/// See [`Run::resume`]. `client` is the MCP client, if there is one; the tool can use its capabilities.
pub(in crate::runner) async fn resume(
    run: &Run,
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
    // The transaction that claims the call checks that the stored call has not changed since this comparison.
    let by = (decision, decider);
    let compared = |pending: &PendingCall, record: &mut DecisionRecord| read(run, pending, by, record, Reader::Own);
    match reopen(run, question.call_id(), given, compared).await? {
        Reopened::Mismatch(result) => Ok(result),
        Reopened::Open(mut open, mut decided) => {
            if let Some(noted) = Box::pin(count(&mut open, &mut decided, decider)).await? {
                return Ok(noted);
            }
            open.client = client;
            let graph = open.graph();
            let ended = Box::pin(carry_out(&mut open, decided)).await;
            // A graph that does not continue ends here, together with its calls.
            let left = graph.filter(|_| open.claim.is_some());
            let ended = match &left {
                Some(graph) => ended.map_err(|stop| stop_graph(&mut open, graph, stop)),
                None => ended,
            };
            let result = Box::pin(open.finish_waiting(ended)).await?;
            orphans::leave(run, result.call_id(), left).await;
            Ok(result)
        }
    }
}

/// Counts an approval of a call that needs several. Returns the result of a partial approval or of a refusal.
/// `Ok(None)` if the decision is carried out now.
async fn count(
    open: &mut OpenCall,
    decided: &mut Decided,
    decider: &Decider,
) -> Result<Option<ToolExecResult>, ResumeError> {
    let Some(claim) = &open.claim else { return Ok(None) };
    // Any other decision ends the call, such as a denial or an approval after the expiry.
    if !matches!(claim.decision.decision, DecisionKind::Approved | DecisionKind::Edited) {
        return Ok(None);
    }
    let run = open.run().clone();
    let (call, decision) = (claim.waiting.call.clone(), claim.decision.clone());
    // Edited arguments, and labels that the run gained, can meet a rule that requires more approvals.
    let required = match decided {
        Decided::Run(hydrated, None, _) => call.required.max(stages::required_approvals(&run, hydrated)),
        _ => call.required,
    };
    if required <= 1 {
        return Ok(None);
    }
    let replaced = match decided {
        Decided::Run(hydrated, None, _) if hydrated.digest() != call.argument_digest => {
            Some(Arc::clone(&hydrated.frozen))
        }
        _ => None,
    };
    if replaced.is_some() && run.is_undecidable(call.tool.as_str(), required) {
        let refused = refused(&call, DecisionError::SeveralDeciders);
        let refusal = comparison::refuse(&run, &claim.waiting, decision, refused);
        return Ok(Some(Box::pin(refusal).await));
    }
    let replaced = match replaced {
        Some(frozen) => match Box::pin(world::shown(open, &frozen)).await {
            Ok(stated) => Some(Box::pin(suspend::replaced(&run, &call, &frozen, stated, required)).await),
            Err(stop) => {
                world::report(open, &stop);
                discard(stop);
                let refused = refused(&call, DecisionError::World);
                return Ok(Some(Box::pin(comparison::refuse(&run, &claim.waiting, decision, refused)).await));
            }
        },
        None => None,
    };
    let bars = comparison::judge(&run, &call);
    let approval = Approval { call, decision, decider: decider.clone(), required, replaced, bars };
    let counted = LedgerClient(&run).approve(approval.clone()).await?;
    if matches!(counted, Counted::Refused(Uncounted::Late)) {
        // The call ends in the transaction that records the decision.
        if let Some(claim) = &mut open.claim {
            claim.decision = claim.decision.clone().too_late();
        }
        *decided = Decided::Refuse(Stop::new(Outcome::ApprovalExpired));
        return Ok(None);
    }
    match Box::pin(counting::report_counted(&run, approval, counted)).await? {
        Ok(last) => {
            if let Decided::Run(_, Some(continued), _) = decided {
                continued.earlier.clone_from(&last.approvals);
            }
            if let Some(claim) = &mut open.claim {
                let given = last.required;
                claim.decision.approvals = Some((given, given));
                let is_other = |other: &&Decider| !other.is_same_person(decider);
                claim.decision.earlier = last.approvals.iter().filter(is_other).cloned().collect();
                claim.waiting.call = last;
            }
            Ok(None)
        }
        Err(noted) => Ok(Some(noted)),
    }
}

/// See [`Run::expire`].
pub(in crate::runner) async fn expire(run: &Run, question: &Question) -> Result<ToolExecResult, ResumeError> {
    expire_with(run, question, Stop::new(Outcome::ApprovalExpired)).await
}

/// As [`expire`], but a call without effects ends with `stop`.
pub(in crate::runner) async fn expire_with(
    run: &Run,
    question: &Question,
    stop: Stop,
) -> Result<ToolExecResult, ResumeError> {
    let purpose = Purpose::Close(Some(Suspension::Approval));
    let given = Given { purpose, kind: DecisionKind::Expired, decider: None, question: Some(question) };
    match reopen(run, question.call_id(), given, |_, _| Ok(())).await? {
        Reopened::Mismatch(result) => Ok(result),
        Reopened::Open(mut open, ()) => {
            let left = open.graph();
            let stop = match &left {
                Some(graph) => stop_graph(&mut open, graph, stop),
                None => stop,
            };
            let result = Box::pin(open.finish_waiting(Err(stop))).await?;
            orphans::leave(run, result.call_id(), left).await;
            Ok(result)
        }
    }
}

/// Returns the end of a waiting graph that does not continue. If calls of the graph may have had effects, it ends as
/// `outcome_unknown`.
fn stop_graph(open: &mut OpenCall, graph: &PendingGraph, stop: Stop) -> Stop {
    if !graph.begun {
        return stop;
    }
    open.begin();
    let mut unknown = Stop::new(Outcome::OutcomeUnknown);
    unknown.cause = Some(Cause::Cancelled);
    unknown
}

/// A decision that matches its call.
enum Decided {
    /// The call runs with these arguments, which a person may have edited. A graph continues where it waited.
    Run(Box<Hydrated>, Option<Box<Continued>>, Option<Intervention>),
    /// This value replaces the tool's output.
    Respond(Projected),
    /// The call does not run.
    Refuse(Stop),
}

/// Returns the reason why a decision does not match its call, without carrying it out. `None` if this process finds no
/// reason. An interface that takes several decisions at once checks all of them before it applies the first.
///
/// A process that posts a decision skips the check if it does not have the tool, or has another definition or policy.
/// The process that carries the decision out repeats all checks.
pub(in crate::runner) fn invalid(
    run: &Run,
    pending: &PendingCall,
    (decision, decider): (&ApprovalDecision, &Decider),
    record: &mut DecisionRecord,
    reader: Reader,
) -> Option<Refused> {
    if matches!(decision, ApprovalDecision::Deny(_)) || reader == Reader::Other && !comparison::is_known(run, pending) {
        return None;
    }
    if let Some(mismatch) = comparison::differs(run, pending) {
        return Some(refused(pending, mismatch));
    }
    match read(run, pending, (decision.clone(), decider), record, reader) {
        // Edited arguments or a value are for the inner call. The run of the graph reads them again.
        Ok(Decided::Run(_, Some(_), _)) => invalid_within(run, pending, decision),
        Ok(_) => None,
        Err(refused) => Some(refused),
    }
}

/// As [`invalid`], for the inner call for which a graph waits. If its tool is not in the catalog, finds no reason.
fn invalid_within(run: &Run, pending: &PendingCall, decision: &ApprovalDecision) -> Option<Refused> {
    let tool = pending.decided_tool();
    run.shared().catalog.entry(tool)?;
    match decision {
        ApprovalDecision::ApproveEdited(arguments) => {
            let call = ToolCall::text(pending.call_id.clone(), tool, arguments.as_str());
            stages::hydrate_waiting(run, pending, call, Reader::Other).err()
        }
        ApprovalDecision::Respond(value) => respond(run, pending, value).err(),
        _ => None,
    }
}

/// Reads a decision before its call is claimed. If it does not match, the call still waits.
fn read(
    run: &Run,
    pending: &PendingCall,
    (decision, decider): (ApprovalDecision, &Decider),
    record: &mut DecisionRecord,
    reader: Reader,
) -> Result<Decided, Refused> {
    let is_late = pending.is_expired(run.shared().clock.now());
    if is_late {
        record.decision = DecisionKind::TooLate;
    }
    if let Some(graph) = &pending.graph {
        // Edited arguments would give the inner call a new question, which only the run of the graph can write. A
        // person cannot answer for the tool of a call that needs several approvals.
        let is_edited = matches!(decision, ApprovalDecision::ApproveEdited(_));
        if !is_late && pending.required > 1 && (is_edited || matches!(decision, ApprovalDecision::Respond(_))) {
            return Err(refused(pending, DecisionError::SeveralDeciders));
        }
        let earlier = pending.approvals.clone();
        let continued = Continued { pending: (**graph).clone(), decision, decider: decider.clone(), earlier };
        return within(run, pending, continued, record, reader);
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
        ApprovalDecision::Respond(_) if counting::required_now(run, pending) > 1 => {
            Err(refused(pending, DecisionError::SeveralDeciders))
        }
        ApprovalDecision::Respond(value) => respond(run, pending, &value),
        ApprovalDecision::Approve => approved(run, pending, pending.arguments.as_str().to_owned(), record, reader),
        ApprovalDecision::ApproveEdited(arguments) => approved(run, pending, arguments, record, reader),
    }
}

/// Reads a decision on a waiting graph. The graph receives the decision and continues. It also receives denials and
/// late decisions, so that it can end by itself.
fn within(
    run: &Run,
    pending: &PendingCall,
    continued: Continued,
    record: &mut DecisionRecord,
    reader: Reader,
) -> Result<Decided, Refused> {
    let denies = matches!(continued.decision, ApprovalDecision::Deny(_));
    let compared = if denies { comparison::compare(run, pending) } else { Ok(()) };
    match compared.and_then(|()| approved(run, pending, pending.arguments.as_str().to_owned(), record, reader)) {
        Ok(Decided::Run(hydrated, ..)) => Ok(Decided::Run(hydrated, Some(Box::new(continued)), None)),
        // A denial is possible even if the graph may not continue.
        Err(_) if denies => Ok(Decided::Refuse(Stop::new(Outcome::ApprovalDenied))),
        decided => decided,
    }
}

/// Hydrates the arguments again and checks whether the policy denies the call. If edited arguments are invalid or
/// denied, the call still waits, so that a person can correct them.
fn approved(
    run: &Run,
    pending: &PendingCall,
    arguments: String,
    record: &mut DecisionRecord,
    reader: Reader,
) -> Result<Decided, Refused> {
    let edited = arguments != pending.arguments.as_str();
    let call = ToolCall::text(pending.call_id.clone(), pending.tool.as_str(), arguments);
    let hydrated = stages::hydrate_waiting(run, pending, call, reader)?;
    if edited {
        record.edited_digest = Some(run.shared().digests.of(hydrated.digest()));
        let sensitive = &hydrated.frozen.entry.spec.sensitive;
        record.changes =
            changes(ArgumentChangeKind::Edited, pending.arguments.as_str(), hydrated.frozen.canonical(), sensitive);
        record.arguments = RecordedArguments::Masked(hydrated.frozen.decided_on());
    }
    if !edited && hydrated.digest() != pending.argument_digest {
        let mut refused = refused(pending, DecisionError::Arguments);
        refused.stop = refused.stop.reason("the stored arguments now hydrate to different values", None);
        return Err(refused);
    }
    if stages::is_denied(run, &hydrated) {
        // The same policy suspended the call, so the cause of a denial is the edited arguments, or a change of the run
        // or of the tool's server.
        let gained = run.labels().iter().any(|label| !pending.labels.contains(label));
        let stop = match edited {
            true => Stop::new(Outcome::PolicyDenied)
                .message("The policy does not allow the edited arguments. The call still waits."),
            // Meanwhile the MCP server of the tool has published another definition.
            false if hydrated.frozen.entry.is_drifted() => Stop::mismatch(DecisionError::Definition),
            false if run.options().tools.as_ref().is_some_and(|tools| !tools.contains(pending.tool.as_str())) => {
                Stop::mismatch(DecisionError::Tools)
            }
            false if gained => Stop::mismatch(DecisionError::Labels),
            false => Stop::mismatch(DecisionError::Roles),
        };
        let shown = Shown::Masked(hydrated.frozen.decided_on());
        return Err(Refused { stop, shown });
    }
    // An earlier decider may have edited the arguments, too.
    let changed = match &pending.replaced {
        None => record.changes.clone(),
        Some(replaced) => {
            let sensitive = &hydrated.frozen.entry.spec.sensitive;
            let of_model = replaced.arguments.as_str();
            changes(ArgumentChangeKind::Edited, of_model, hydrated.frozen.canonical(), sensitive)
        }
    };
    let edited = (!changed.is_empty()).then_some(Intervention::Edited(changed));
    Ok(Decided::Run(Box::new(hydrated), None, edited))
}

/// Reads the value that a person provides in place of the tool's output. It is validated and projected like the output.
fn respond(run: &Run, pending: &PendingCall, value: &str) -> Result<Decided, Refused> {
    let refuse = |stop: Stop| {
        // The standard messages of these outcomes state that the tool ran.
        let why = match stop.outcome {
            Outcome::ResultTooLarge => "is larger than the limit of the tool's result",
            _ => "is not valid",
        };
        let stop = stop.message(format!("The value in place of the tool's output {why}. The call still waits."));
        Refused { stop, shown: Shown::Masked(pending.shown_arguments.clone()) }
    };
    projected(run, pending.decided_tool(), value).map(Decided::Respond).map_err(refuse)
}

/// Validates and projects a person's value like the tool's own output.
pub(in crate::runner) fn projected(run: &Run, tool: &str, value: &str) -> Result<Projected, Stop> {
    let shared = run.shared();
    let entry = shared.catalog.entry(tool).ok_or_else(|| Stop::new(Outcome::ApprovalMismatch))?;
    let projector = shared.compiled.shown(entry).ok_or_else(|| Stop::new(Outcome::RedactionFailed))?;
    let tree = json::parse_value(value, &json::Limits::UNBOUNDED).map_err(|_| Stop::new(Outcome::OutputInvalid))?;
    let limit = entry.result_bytes(&run.policy().limits_of(entry.spec.name.as_str()));
    projector.project(&tree, limit).map_err(|error| {
        // A value that cannot be written at all has no violations, so the whole schema names them.
        let whole = || shared.compiled.check_value(entry.shown()?, &tree).err();
        let violations = match &error {
            ProjectError::OutputInvalid(found) if found.is_empty() => whole().unwrap_or_default(),
            ProjectError::OutputInvalid(found) => found.clone(),
            _ => Vec::new(),
        };
        stages::unprojected(&error).errors(violations)
    })
}

/// Carries out a decision: ends the call, or runs the remaining stages of the gate.
async fn carry_out(open: &mut OpenCall, decided: Decided) -> Result<Ending, Stop> {
    match decided {
        Decided::Refuse(stop) => Err(stop),
        Decided::Respond(projected) => {
            open.draft.intervened(Intervention::Answered);
            Ok(Ending::Delivered(delivered(projected)))
        }
        Decided::Run(hydrated, continued, edited) => {
            open.has_acted = continued.as_ref().is_some_and(|continued| continued.pending.begun);
            open.continued = continued;
            edited.into_iter().for_each(|edited| open.draft.intervened(edited));
            run_approved(open, *hydrated).await
        }
    }
}

#[cfg(test)]
mod tests;
