//! Compares a waiting call with the run that is about to finish it. Every function that finishes a call uses this file.
//!
//! Ownership is checked first: for other principals and tenants the call does not exist. The other checks run before
//! the call is claimed. After a mismatch the call still waits.

use std::sync::Arc;

use crate::call::{CallId, Decider, DecisionError, Outcome, Suspension, ToolExecResult, Violation};
use crate::contain::discard;
use crate::json;
use crate::policy::are_within;
use crate::runner::gate::draft::{Draft, Refused, Shown};
use crate::runner::gate::ending::Stop;
use crate::runner::report::failure::Failure;
use crate::runner::report::telemetry;
use crate::runner::waiting::late;
use crate::runner::{ResumeError, Run};
use crate::store::waiting::Bars;
use crate::store::{DecisionRecord, DecisionRefusal, PendingCall, Waiting, is_before};

/// The purpose for which a suspended call is reopened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Purpose {
    /// The call may have an effect: it runs, or a value replaces its output.
    Resume(Suspension),
    /// The call ends without an effect. `None` closes a call of any suspension.
    Close(Option<Suspension>),
}

/// Whether the call has the suspension of this purpose and belongs to the principal and the tenant of the run.
pub(in crate::runner) fn is_theirs(run: &Run, pending: &PendingCall, purpose: Purpose) -> bool {
    let wanted = match purpose {
        Purpose::Resume(suspension) => Some(suspension),
        Purpose::Close(suspension) => suspension,
    };
    wanted.is_none_or(|suspension| suspension == pending.suspension)
        && run.owns(pending.principal.as_deref(), pending.tenant.as_deref())
}

/// Checks that the suspended call is unchanged, and that the run has no more rights than the run that made the call.
///
/// Labels are not compared. The run gains the labels of the call.
pub(in crate::runner) fn compare(run: &Run, pending: &PendingCall) -> Result<(), Refused> {
    if let Some(mismatch) = differs(run, pending) {
        return Err(refused(pending, mismatch));
    }
    run.remembered().label(pending.all_labels());
    Ok(())
}

/// Returns the refusal of a decision or result for a waiting call.
pub(in crate::runner) fn refused(pending: &PendingCall, mismatch: DecisionError) -> Refused {
    let shown = Shown::Masked(pending.shown_arguments.clone());
    Refused { stop: Stop::mismatch(mismatch), shown }
}

/// Returns the first difference between the suspended call and the call that would run now.
pub(in crate::runner) fn differs(run: &Run, pending: &PendingCall) -> Option<DecisionError> {
    differences(run, pending).next()
}

pub(in crate::runner) fn differences(run: &Run, pending: &PendingCall) -> impl Iterator<Item = DecisionError> {
    let (shared, options) = (run.shared(), run.options());
    let definition = shared.catalog.entry(pending.tool.as_str()).map(|entry| entry.spec.definition_hash);
    let checks = [
        (definition != Some(pending.definition_hash), DecisionError::Definition),
        (run.policy().revision() != pending.policy_revision, DecisionError::Policy),
        (json::digest(pending.arguments.as_str()) != pending.argument_digest, DecisionError::Arguments),
        (options.roles.iter().any(|role| !pending.roles.contains(role)), DecisionError::Roles),
        (options.attributes != pending.attributes, DecisionError::Attributes),
        (options.caller != pending.caller, DecisionError::Caller),
        (!are_within(options.tools.as_ref(), pending.tools.as_ref()), DecisionError::Tools),
        (is_before(shared.clock.now(), pending.created_at), DecisionError::Clock),
    ];
    checks.into_iter().filter(|(differs, _)| *differs).map(|(_, mismatch)| mismatch)
}

/// As [`bars_from`], for a waiting call.
pub(in crate::runner) fn bars(run: &Run, call: &PendingCall, decider: &Decider) -> Option<DecisionError> {
    bars_from(run, call.decided_tool(), &call.call_id, decider)
}

/// Returns the reason why a person may not decide on a call of a tool. `None` if the person may. Every decision passes
/// this function.
///
/// A decider of another tenant is reported to operators. The decider gets the error of a call that does not exist, so a
/// service that forgot to set the tenant can find its mistake only in the report.
pub(in crate::runner) fn bars_from(
    run: &Run,
    tool: &str,
    call_id: &CallId,
    decider: &Decider,
) -> Option<DecisionError> {
    let mismatch = run.bars(tool, decider)?;
    if mismatch == DecisionError::DeciderTenant {
        let text = mismatch.to_string();
        let failure = run.failure(mismatch.code(), &text);
        let failure = Failure { tool: Some(tool), call_id: Some(call_id), ..failure };
        run.report_failure(format_args!("a decision came from another tenant"), &failure);
    }
    Some(mismatch)
}

/// Whether this process has the tool of a waiting call with the same definition, and the policy under which the call
/// waits.
pub(in crate::runner) fn is_known(run: &Run, call: &PendingCall) -> bool {
    let entry = run.shared().catalog.entry(call.tool.as_str());
    has_rules_of(run, call)
        && entry.is_some_and(|entry| entry.spec.definition_hash == call.definition_hash && !entry.is_drifted())
}

/// Whether this process has the tool on which a person decides, and the policy under which the call waits.
fn has_rules_of(run: &Run, call: &PendingCall) -> bool {
    run.effect_of(call.decided_tool()).is_some() && run.policy().revision() == call.policy_revision
}

/// Returns the function that checks the deciders of a waiting call. `None` if this process cannot check them, because
/// it does not have the tool on which they decide, or the policy under which the call waits.
pub(in crate::runner) fn judge(run: &Run, call: &PendingCall) -> Option<Bars> {
    has_rules_of(run, call).then(|| {
        let run = run.clone();
        Arc::new(move |call: &PendingCall, decider: &Decider| run.bars(call.decided_tool(), decider)) as Bars
    })
}

/// Records the attempt of a decider who may not decide. Returns the error for the decider.
pub(in crate::runner) async fn barred(
    run: &Run,
    waiting: &Waiting,
    decision: DecisionRecord,
    mismatch: DecisionError,
) -> ResumeError {
    let mut refused = refused(&waiting.call, mismatch);
    refused.stop.outcome = Outcome::PolicyDenied;
    refuse(run, waiting, decision, refused).await;
    ResumeError::barred(&waiting.call.call_id, mismatch)
}

/// Returns the result of a decision that does not match its call, without a record.
pub(in crate::runner) fn invalid_result(call: &PendingCall, refused: Refused) -> ToolExecResult {
    let mut stop = explained(refused).stop;
    stop.outcome = Outcome::ApprovalMismatch;
    stop.result(call.call_id.clone(), false)
}

/// Adds a reason for operators, if the stop has none.
fn explained(Refused { mut stop, shown }: Refused) -> Refused {
    if stop.reason.is_none() {
        let why = format!("the value for the waiting call was refused as `{}`", stop.outcome);
        stop = stop.reason(why, None);
    }
    Refused { stop, shown }
}

/// Records a decision or a value that does not match its call, and returns its result. The call still waits. No event
/// is emitted, because a UI still shows the same call.
pub(in crate::runner) async fn refuse(
    run: &Run,
    waiting: &Waiting,
    mut decision: DecisionRecord,
    refused: Refused,
) -> ToolExecResult {
    let Refused { mut stop, shown } = explained(refused);
    let violations = stop.errors.iter().map(Violation::recorded).collect();
    decision.refused = Some(DecisionRefusal { outcome: stop.outcome, mismatch: stop.mismatch, violations });
    decision.arguments = shown.recorded(&run.shared().digests);
    stop.outcome = Outcome::ApprovalMismatch;
    let draft = Draft::reopened(run, waiting.record.clone());
    telemetry::contained(run, &draft, &stop);
    if let Err(error) = late::note_refused(run, decision).await {
        telemetry::record_lost(run, &draft, &error);
        discard(error);
    }
    stop.result(waiting.call.call_id.clone(), false)
}
