//! Counts the approvals of a call that needs several. The process that receives a partial approval records it; the last
//! approval is carried out.

use crate::call::{Decider, DecisionError, Question, Suspension, ToolExecResult};
use crate::contain::discard;
use crate::runner::gate::draft::Draft;
use crate::runner::gate::stages;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::report::telemetry;
use crate::runner::waiting::comparison;
use crate::runner::waiting::comparison::{Purpose, refused};
use crate::runner::waiting::suspend::{self, Given};
use crate::runner::{ApprovalDecision, ResumeError, Run};
use crate::store::waiting::{Approval, Counted, Uncounted};
use crate::store::{Key, PendingCall, StoreError, Waiting};

/// Returns the number of deciders who have to approve a waiting call now. Labels that its run gained after the
/// suspension can meet a rule that requires more approvals. For a graph, returns the stored number; its inner call has
/// a number of its own.
pub(in crate::runner) fn required_now(run: &Run, call: &PendingCall) -> u32 {
    // Another process may have added labels of the run to the call.
    run.remembered().label(&call.gained);
    let entry = run.shared().catalog.entry(call.tool.as_str());
    let Some(entry) = entry.filter(|_| call.graph.is_none() && run.policy().can_require_several()) else {
        return call.required;
    };
    match stages::read_again(run, entry, &call.call_id, call.arguments()) {
        Ok(hydrated) => call.required.max(stages::required_approvals(run, &hydrated)),
        Err(stop) => {
            // A later check refuses the decision for the same reason.
            discard(stop);
            call.required
        }
    }
}

/// Converts the store's answer to an approval into a result. `Ok(Ok(call))` is the waiting call after its last
/// approval, which the caller carries out. `Ok(Err(result))` is the result of a partial approval, or of an approval of
/// another question.
///
/// # Errors
///
/// `NotAllowed` if the decider has approved the call before, `NotWaiting` if the call has expired or no longer waits,
/// and `Store` if the store fails.
pub(crate) async fn report_counted(
    run: &Run,
    Approval { call, decision, .. }: Approval,
    counted: Counted,
) -> Result<Result<PendingCall, ToolExecResult>, ResumeError> {
    match counted {
        Counted::Last(call) => Ok(Ok(*call)),
        Counted::Noted(waiting) => {
            let (given, required) = waiting.call.approvals();
            let given = u32::try_from(given.len()).unwrap_or(u32::MAX);
            let result = ToolExecResult::noted(waiting.call.question(), (given, required));
            // Emits the suspension again, so that a UI shows the question to another person.
            let mut draft = Draft::reopened(run, waiting.record.clone());
            draft.copy_from_pending(&waiting.call);
            telemetry::announce_end(run, &draft, &result);
            Ok(Err(result))
        }
        Counted::Refused(Uncounted::Again) => match run.shared().store.waiting(Key::of_waiting(&call)).await {
            Ok(Some(waiting)) => Err(comparison::barred(run, &waiting, decision, DecisionError::SameDecider).await),
            Ok(None) => Err(ResumeError::NotWaiting(call.call_id)),
            Err(error) => Err(run.store_failed(error)),
        },
        Counted::Refused(Uncounted::Other) => {
            Ok(Err(refused(&call, DecisionError::Question).stop.result(call.call_id, false)))
        }
        Counted::Refused(Uncounted::Late) => {
            LedgerClient(run).note(decision.too_late().not_pending()).await.map_err(|error| run.store_failed(error))?;
            Err(ResumeError::NotWaiting(call.call_id))
        }
        Counted::Refused(Uncounted::Gone) => Err(ResumeError::NotWaiting(call.call_id)),
    }
}

/// Checks an approval of a call that needs several, without carrying it out. `Ok(Ok(Some(approval)))` is such an
/// approval. `Ok(Ok(None))` stands for any other decision. `Ok(Err(result))` is the result of a refused approval.
pub(crate) async fn read_here(
    run: &Run,
    question: &Question,
    decision: &ApprovalDecision,
    decider: &Decider,
) -> Result<Result<Option<Approval>, ToolExecResult>, ResumeError> {
    if *decision != ApprovalDecision::Approve {
        return Ok(Ok(None));
    }
    let id = question.call_id();
    let waiting = suspend::read(run, id).await?;
    let needs_several = waiting.as_ref().is_some_and(|Waiting { call, .. }| {
        let is_theirs = run.owns(call.principal.as_deref(), call.tenant.as_deref());
        is_theirs && required_now(run, call) > 1 && !call.is_expired(run.shared().clock.now())
    });
    if !needs_several {
        return Ok(Ok(None));
    }
    let purpose = Purpose::Resume(Suspension::Approval);
    let given = Given { purpose, kind: decision.kind(), decider: Some(decider), question: Some(question) };
    let asked = suspend::asked_of(run, id, waiting, &given).await?;
    Ok(asked.map(|(Waiting { call, .. }, decision)| {
        let (required, bars) = (required_now(run, &call), comparison::judge(run, &call));
        Some(Approval { call, decision, decider: decider.clone(), required, replaced: None, bars })
    }))
}

/// Records a partial approval and returns its result. `Ok(None)` if the approval is the last one, or the decision is
/// not an approval of a call that needs several.
async fn note_here(
    run: &Run,
    question: &Question,
    decision: &ApprovalDecision,
    decider: &Decider,
) -> Result<Option<ToolExecResult>, ResumeError> {
    match read_here(run, question, decision, decider).await? {
        Ok(None) => Ok(None),
        Ok(Some(approval)) => {
            let counted = LedgerClient(run).approve(approval.clone()).await?;
            Ok(Box::pin(report_counted(run, approval, counted)).await?.err())
        }
        Err(refused) => Ok(Some(refused)),
    }
}

/// Copies the approvals of a waiting graph, except the last one, to the inner call for which the graph waits. If the
/// inner call refuses an approval, the approval counts for neither call.
pub(crate) async fn note_earlier(run: &Run, question: &Question, earlier: &[Decider]) -> Result<(), StoreError> {
    for decider in earlier {
        match run.pending(question.call_id()).await? {
            Some(call) if !call.is_approved_by(decider) && !call.is_last_approval(decider) => {}
            Some(_) => continue,
            None => return Ok(()),
        }
        if let Err(ResumeError::Store(error)) =
            Box::pin(note_here(run, question, &ApprovalDecision::Approve, decider)).await
        {
            return Err(error);
        }
    }
    Ok(())
}
