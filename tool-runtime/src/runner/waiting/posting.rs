//! Checks decisions before they are posted: stored as messages for the run of their call.

use crate::call::{Caller, Decider, DecisionError, Question, Suspension};
use crate::contain::discard;
use crate::runner::gate::draft::Refused;
use crate::runner::gate::stages::Reader;
use crate::runner::ledger::recover;
use crate::runner::run::snapshot::RunSnapshot;
use crate::runner::waiting::approval;
use crate::runner::waiting::comparison::{self, Purpose};
use crate::runner::waiting::counting;
use crate::runner::waiting::suspend::{Given, checked_decision};
use crate::runner::{ApprovalDecision, ResumeError, Run, RunOptions, ToolRunner};
use crate::store::{DecisionKind, DecisionRecord, PendingCall};

/// A decision and its decider. Without a decision, the value stands for the expiry of the call.
pub(crate) type By<'a> = (Option<&'a ApprovalDecision>, Option<&'a Decider>);

/// See [`Run::may_decide`].
pub(in crate::runner) async fn may_decide(
    run: &Run,
    question: &Question,
    decider: &Decider,
) -> Result<(), ResumeError> {
    let id = question.call_id();
    let waiting = run.shared().store.waiting(run.waiting_key(id)).await.map_err(|error| run.store_failed(error))?;
    let purpose = Purpose::Resume(Suspension::Approval);
    let asks = |call: &PendingCall| comparison::is_theirs(run, call, purpose) && call.question() == *question;
    let call = waiting.map(|waiting| waiting.call).filter(asks);
    let call = call.ok_or_else(|| ResumeError::NotWaiting(id.clone()))?;
    let again = || call.needs_others_than(decider).then_some(DecisionError::SameDecider);
    let mismatch = comparison::bars(run, &call, decider).or_else(again);
    mismatch.map_or(Ok(()), |mismatch| Err(ResumeError::barred(id, mismatch)))
}

/// Checks a decision before it is posted, with the checks of the process that will carry it out. A refusal is recorded.
/// `with_message` states that a message of the user follows the decision; the message abandons calls that still wait.
pub(crate) async fn admits(run: &Run, question: &Question, by: By<'_>, with_message: bool) -> Result<(), ResumeError> {
    match checked_decision(run, question.call_id(), &given(question, by)).await? {
        Ok((waiting, decision)) if with_message && leaves_waiting(run, &waiting.call, by) => {
            Err(comparison::barred(run, &waiting, decision, DecisionError::WithMessage).await)
        }
        Ok((waiting, mut record)) => match invalid(run, &waiting.call, by, &mut record, Reader::Other) {
            Some(refused) => Err(ResumeError::invalid(&comparison::refuse(run, &waiting, record, refused).await)),
            None => Ok(()),
        },
        Err(_) => Err(ResumeError::NotAllowed(DecisionError::Question)),
    }
}

/// Checks a decision in the run that would carry it out, without recording anything. Returns an error if the decision
/// does not match its call.
pub(crate) fn fits(run: &Run, call: &PendingCall, by: By<'_>) -> Result<(), ResumeError> {
    let now = run.shared().clock.now();
    let mut record = DecisionRecord::new(call, ApprovalDecision::kind_of(by.0), by.1, now);
    match invalid(run, call, by, &mut record, Reader::Own) {
        Some(refused) => Err(ResumeError::invalid(&comparison::invalid_result(call, refused))),
        None => Ok(()),
    }
}

/// As [`approval::invalid`]. An expiry always matches its call.
fn invalid(
    run: &Run,
    call: &PendingCall,
    (decision, decider): By<'_>,
    record: &mut DecisionRecord,
    reader: Reader,
) -> Option<Refused> {
    approval::invalid(run, call, decision.zip(decider)?, record, reader)
}

fn given<'a>(question: &'a Question, (decision, decider): By<'a>) -> Given<'a> {
    let purpose = Purpose::Close(Some(Suspension::Approval));
    Given { purpose, kind: ApprovalDecision::kind_of(decision), decider, question: Some(question) }
}

/// Records that a person's decision was refused although its call waits. The recorded reason is the decision's own
/// mistake; for a valid decision, it is that another decision of the same request was refused.
pub(crate) async fn note_refused(run: &Run, question: &Question, by: By<'_>, with_message: bool) {
    if let Err(error) = refuse_each(run, question, by, with_message).await {
        discard(error);
    }
}

async fn refuse_each(run: &Run, question: &Question, by: By<'_>, with_message: bool) -> Result<(), ResumeError> {
    if let Ok((waiting, mut record)) = checked_decision(run, question.call_id(), &given(question, by)).await?
        && by.1.is_some()
    {
        if with_message && leaves_waiting(run, &waiting.call, by) {
            discard(comparison::barred(run, &waiting, record, DecisionError::WithMessage).await);
        } else if let Some(refused) = invalid(run, &waiting.call, by, &mut record, Reader::Own) {
            discard(comparison::refuse(run, &waiting, record, refused).await);
        } else {
            discard(comparison::barred(run, &waiting, record, DecisionError::NotPending).await);
        }
    }
    Ok(())
}

/// Whether a call still waits for other deciders after this decision. Such a decision must not come with a message of
/// the user, because the message would abandon the call with its approvals.
pub(crate) fn leaves_waiting(run: &Run, call: &PendingCall, (decision, decider): By<'_>) -> bool {
    if call.is_expired(run.shared().clock.now()) {
        return false;
    }
    match ApprovalDecision::kind_of(decision) {
        DecisionKind::Approved => {
            let call = PendingCall { required: counting::required_now(run, call), ..call.clone() };
            decider.is_some_and(|decider| !call.is_last_approval(decider))
        }
        // Edited arguments can meet a rule that requires more approvals.
        DecisionKind::Edited => call.required.max(run.most_required(call.decided_tool())) > 1,
        _ => false,
    }
}

/// Returns a run for a waiting call, with no more permissions than the call's run had. This runner's policy and the
/// policies of the run's snapshot apply. `options` provides connections and a sink. `None` if there are too many
/// policies, or for a call that a graph makes, because a person decides on the graph's own call instead.
pub(crate) fn run_of(
    runner: &ToolRunner,
    call: &PendingCall,
    kept: Option<RunSnapshot>,
    options: &RunOptions,
) -> Option<Run> {
    if matches!(call.caller, Caller::Graph { .. }) {
        return None;
    }
    let labels = call.all_labels().cloned().collect();
    recover::start(runner, kept, RunOptions { labels, ..recover::options_of(call, options) })
}
