//! Begin: enters a call that may have an effect into the ledger, the store's list of begun calls, before the effect.
//!
//! The file is long because it handles every variant of [`Begun`], the store's answer to an intent.

use std::sync::Arc;

use tokio::time::Instant;

use crate::call::{Cause, Decision, DecisionError, Outcome, ToolExecResult};
use crate::contain::discard;
use crate::hydrate::Frozen;
use crate::registration::Purpose;
use crate::runner::ResumeError;
use crate::runner::gate::ending::{Ending, Stop, Suspended};
use crate::runner::gate::open::{OpenCall, Origin};
use crate::runner::gate::pending::frozen_call;
use crate::runner::gate::stages::bind::Bound;
use crate::runner::gate::stages::effect;
use crate::runner::gate::stages::reserve::exhausted;
use crate::runner::ledger::accounts::{Booking, Unacknowledged};
use crate::runner::ledger::client::{Attempt, Claim, LedgerClient};
use crate::runner::ledger::look_up;
use crate::runner::report::telemetry;
use crate::runner::waiting::{notices, world};
use crate::store::effects::Blocked;
use crate::store::ledger::{Begun, Intent};
use crate::store::waiting::{Fate, Taken};
use crate::store::{FrozenArguments, Key, PendingCall, StoreError, StoredUnknown};
use crate::tool::is_graph;

/// The next step of a bound call, by the store's answer.
pub(in crate::runner) enum Beginning {
    Run(Entered),
    End(Ending),
    /// The call waits for a person.
    Ask,
    /// Earlier calls of the effect under this key have an unknown outcome.
    Twins(Key, Vec<StoredUnknown>),
}

/// A bound call that may run. If it needs a ledger entry, it has one. Only this file and [`twins`](super::twins) make
/// this value.
pub(in crate::runner) struct Entered {
    pub(super) purpose: Purpose,
}

/// Begins a call that needs no ledger entry. Returns `None` for any other call, which [`enter`] begins.
///
/// A tool that only reads, or that only prepares a payload for a client, has no effect that could happen twice. Such a
/// call gets a ledger entry only if it was approved, so that a crash does not lose the approval; a process that takes
/// the call over closes the entry. If the principal or the tenant has a budget, [`enter`] books the call first.
#[inline]
pub(in crate::runner) fn begin(open: &mut OpenCall, bound: &Bound) -> Option<Entered> {
    if effect::has_none(open, &bound.reserved.hydrated.frozen) && !was_approved(open) && bound.reserved.bill.is_none() {
        open.begin();
        return Some(Entered { purpose: Purpose::Work });
    }
    None
}

/// Whether a decision or a grant permitted the call, here or in the process from which it is taken over.
const fn was_approved(open: &OpenCall) -> bool {
    open.claim.is_some() || open.grant.is_some() || open.is_taken_over()
}

/// Enters the call into the ledger, and removes it from the waiting calls if it was approved. Both happen in one
/// transaction. An approved call begins only if its precondition still has the values that the approver was shown.
pub(in crate::runner) async fn enter(open: &mut OpenCall, bound: &mut Bound) -> Result<Beginning, Stop> {
    if open.claim.is_some()
        && let Some(ending) = Box::pin(world::changed(open, &bound.connections)).await?
    {
        return Ok(Beginning::End(ending));
    }
    let harmless = effect::has_none(open, &bound.reserved.hydrated.frozen);
    let spec = Arc::clone(&bound.reserved.hydrated.frozen.entry.spec);
    let is_unentered = harmless && !was_approved(open);
    let claim = open.claim.take();
    let is_decided = claim.is_some();
    let grant = open.grant.take();
    let (run, bill) = (open.run().clone(), bound.reserved.bill.take());
    if is_unentered {
        let begun = match bill {
            None => Ok(Begun::Now { booked: None, graph: None, is_again: false }),
            Some(bill) => LedgerClient(&run).book(*bill).await,
        };
        return continue_with(open, begun, None);
    }
    let is_graph = is_graph(spec.name.as_str());
    // The document for a takeover contains a digest of the arguments, which needs the digest key.
    let is_recoverable =
        !harmless && (spec.idempotent || bound.reserved.hydrated.frozen.entry.behaviour.may_reconcile());
    if is_graph || is_recoverable || open.draft.has_digests() {
        run.digests().await;
    }
    let shown = claim.as_deref().map(|claim| claim.waiting.call.unknown.clone()).unwrap_or_default();
    let claimed = effect::claim(open, &bound.reserved.hydrated.frozen, shown);
    // If the record was already written, the call must not begin.
    let Some(lost_record) = open.draft.lost_record(&open.run().shared().digests) else {
        return Err(Stop::new(Outcome::Cancelled));
    };
    let attempt = Attempt {
        key: Key::call(Arc::clone(run.identity()), bound.context(open).ledger_key()),
        owner: run.shared().attempt(),
        unheard: bill.as_deref().map(Unacknowledged::of),
        graph: None,
        effect: claimed.as_ref().map(|effect| (effect.key.clone(), effect.once)),
        notices: notices::of_begun(&run, &bound.reserved.hydrated.frozen),
        is_again: false,
    };
    let (waited, reconciles) = takeover_document(open, claim.as_deref(), bound, harmless);
    let intent = Intent {
        key: attempt.key.clone(),
        owner: Arc::clone(&attempt.owner),
        lease: run.shared().lease,
        lost_record,
        grant: grant.as_deref().map(|(key, _)| key.clone()),
        repeatable: (harmless || spec.idempotent) && open.origin != (Origin::TakenOver { only_reconciles: true }),
        reconciles,
        worker: run.lease().map(|lease| lease.epoch),
        ends_with_process: run.options().ends_with_process,
        waited,
        graph: is_graph.then(|| open.graph_run(&bound.context(open))),
        bill: bill.map(|bill| *bill),
        effect: claimed,
        notices: attempt.notices.clone(),
        waits: (claim.is_none() && run.state().is_continued())
            .then(|| (run.waiting_key(&open.draft.id), bound.reserved.hydrated.frozen.argument_digest())),
    };
    // From here on, the write of the call's record also closes the attempt, so that no process repeats it.
    open.attempt = Some(Box::new(attempt.clone()));
    if claim.is_none()
        && let Some(known) = Box::pin(begun_before(open, Arc::clone(&bound.reserved.hydrated.frozen))).await
    {
        open.attempt = None;
        return Ok(Beginning::End(Ending::Elsewhere(Box::new(known))));
    }
    let (requested_at, key) = (Instant::now(), attempt.key.clone());
    let begun = match claim {
        None => LedgerClient(&run).enter(intent, attempt).await,
        Some(claim) => match take(open, bound, *claim, intent, attempt).await {
            Ok(begun) => Ok(begun),
            Err(error) => return Ok(Beginning::End(Ending::NotTaken(error))),
        },
    };
    if matches!(begun, Ok(Begun::Replaced | Begun::Rekeyed)) {
        let rekeyed = matches!(begun, Ok(Begun::Rekeyed)).then_some(&key);
        let result = Box::pin(in_another_process(open, rekeyed)).await;
        return Ok(Beginning::End(Ending::Elsewhere(Box::new(result))));
    }
    let begun = match (begun, open.attempt.as_deref()) {
        (Ok(begun @ (Begun::Now { .. } | Begun::Abandoned)), Some(attempt)) => {
            LedgerClient(&run).confirm(attempt, requested_at).await.map(|()| begun)
        }
        (begun, _) => begun,
    };
    if matches!(begun, Ok(Begun::Abandoned)) {
        // Without a limit, a reconciliation that never ends would hold the run forever.
        bound.reserved.timeout.get_or_insert(run.shared().lease);
    }
    if is_decided && matches!(begun, Ok(Begun::Blocked(Blocked::Runs))) {
        return Ok(Beginning::End(Box::pin(effect::still_waits(open)).await));
    }
    let is_blocked = matches!(begun, Ok(Begun::Blocked(_)));
    // If the tool may reconcile an earlier call next, this call stays counted as a repetition.
    let is_repeated = is_decided || matches!(begun, Ok(Begun::Blocked(Blocked::Unknown(_))));
    let beginning = continue_with(open, begun, grant.and_then(|grant| grant.1));
    if is_blocked || matches!(beginning, Ok(Beginning::Ask | Beginning::End(Ending::Suspended(_)))) {
        uncount(open, bound, is_repeated);
    }
    beginning
}

/// Returns the result of a call that began under another definition of its tool. If the future is dropped during the
/// read, `looks` lets the cleanup read the store again.
async fn begun_before(open: &mut OpenCall, frozen: Arc<Frozen>) -> Option<ToolExecResult> {
    open.looks = true;
    let known = open.begun_as_another(&frozen).await;
    open.looks = false;
    known.unwrap_or_else(|error| {
        // The store cannot tell whether the call has a record, so none is written.
        discard(open.run().store_unread(error));
        Some(open.unknown())
    })
}

/// Returns the result of a call that must not begin here. If `rekeyed` is `None`, a person allowed the call with other
/// arguments. Otherwise the call began earlier under the key `rekeyed` of the ledger, but with another effect key;
/// closes it if its process is gone.
async fn in_another_process(open: &mut OpenCall, rekeyed: Option<&Key>) -> ToolExecResult {
    let Some(key) = rekeyed else {
        open.attempt = None;
        return replaced(open).await;
    };
    let run = open.run().clone();
    let closed = LedgerClient(&run).close_begun(&open.draft.id, key).await;
    let closed = closed.map_err(|error| discard(run.store_unread(error))).ok().flatten();
    // `attempt` is cleared only here, so that a dropped future writes no second record for the call that began.
    open.attempt = None;
    closed.unwrap_or_else(|| running_in_another_process(open))
}

/// Gives back the budget share of a call that does not run. Unless `is_repeated`, also removes the call from the loop
/// guard.
fn uncount(open: &mut OpenCall, bound: &mut Bound, is_repeated: bool) {
    bound.reserved.set_used(open, false);
    if !is_repeated {
        open.run().loop_guard().withdraw(&*bound.reserved.hydrated.frozen);
    }
}

/// Removes an approved call from the waiting calls. If the call cannot begin, it keeps waiting until it is closed or
/// asks a new question.
async fn take(
    open: &mut OpenCall,
    bound: &mut Bound,
    claim: Claim,
    intent: Intent,
    attempt: Attempt,
) -> Result<Begun, ResumeError> {
    let Claim { waiting, decision, lock } = claim;
    open.claimed();
    let run = open.run().clone();
    let then = Fate::Begin(Box::new(intent));
    let (call, noted, ledger) = (waiting.call.clone(), decision.clone(), waiting.ledger_key());
    match LedgerClient(&run).take(Taken { call, decision: noted, ledger, then }, Some(attempt)).await {
        Ok(Begun::Late) => {
            open.unclaimed(Box::new(Claim { waiting, decision: decision.too_late(), lock }));
            Ok(Begun::Late)
        }
        Ok(begun @ (Begun::Exhausted(_) | Begun::Blocked(_))) => {
            open.unclaimed(Box::new(Claim { waiting, decision, lock }));
            if matches!(begun, Begun::Blocked(Blocked::Unknown(_))) {
                return Err(ResumeError::NotAllowed(DecisionError::Question));
            }
            Ok(begun)
        }
        Ok(begun) => {
            let reserved = &mut bound.reserved;
            reserved.set_used(open, true);
            if open.continued.is_none() {
                run.loop_guard().observe(Arc::clone(&reserved.hydrated.frozen) as _);
            }
            Ok(begun)
        }
        Err(error) => {
            // The store has answered that this attempt is not in the ledger.
            if matches!(error, ResumeError::NotWaiting(_)) {
                open.attempt = None;
            }
            Err(error)
        }
    }
}

/// Returns the document from which another process can continue the call, and whether the tool can reconcile it. `None`
/// if no process could continue it: the call was not approved, and its tool neither reconciles nor repeats it.
fn takeover_document(
    open: &OpenCall,
    claim: Option<&Claim>,
    bound: &Bound,
    harmless: bool,
) -> (Option<Box<PendingCall>>, bool) {
    let (run, frozen) = (open.run(), &bound.reserved.hydrated.frozen);
    let reconciles = frozen.entry.behaviour.may_reconcile();
    let waited = match claim {
        Some(claim) => {
            // A person may have edited the arguments.
            let (arguments, argument_digest) =
                (FrozenArguments::new(Arc::clone(frozen.canonical())), frozen.argument_digest());
            let record_digest = Some(run.shared().digests.of(argument_digest));
            Some(PendingCall { arguments, argument_digest, record_digest, ..claim.waiting.call.clone() })
        }
        // The ledger already has the document of the earlier attempt.
        None if open.is_taken_over() || harmless || !(reconciles || frozen.entry.spec.idempotent) => None,
        None => {
            let record_digest = Some(run.shared().digests.of(frozen.argument_digest()));
            Some(PendingCall { record_digest, ..frozen_call(open, frozen, run.shared().clock.now()) })
        }
    };
    (waited.map(Box::new), reconciles)
}

/// Continues with the store's answer. `before_grant` is the policy's decision before a grant permitted the call.
fn continue_with(
    open: &mut OpenCall,
    begun: Result<Begun, StoreError>,
    before_grant: Option<Decision>,
) -> Result<Beginning, Stop> {
    match begun {
        Ok(Begun::Now { booked, graph, is_again }) => {
            open.held = booked.map(|booked| Box::new(Booking::new(booked)));
            if let Some(attempt) = &mut open.attempt {
                (attempt.unheard, attempt.graph, attempt.is_again) = (None, graph, is_again);
            }
            open.begin();
            Ok(Beginning::Run(Entered { purpose: Purpose::Work }))
        }
        Ok(Begun::Abandoned) => {
            if let Some(attempt) = &mut open.attempt {
                attempt.is_again = true;
            }
            open.begin();
            Ok(Beginning::Run(Entered { purpose: Purpose::Reconcile }))
        }
        Ok(Begun::Finished(record)) => Ok(Beginning::End(Ending::Elsewhere(Box::new(look_up::result(*record))))),
        // `Replaced` and `Rekeyed` cannot occur here: `enter` handles them.
        Ok(Begun::Elsewhere | Begun::Replaced | Begun::Rekeyed) => {
            Ok(Beginning::End(Ending::Elsewhere(Box::new(running_in_another_process(open)))))
        }
        Ok(Begun::Waits(call)) => {
            open.attempt = None;
            open.draft.copy_from_pending(&call);
            Ok(Beginning::End(Ending::Suspended(Suspended {
                question: Box::new(call.question()),
                suspension: call.suspension,
                prepared: None,
            })))
        }
        Ok(Begun::Blocked(Blocked::Had(holder))) => {
            open.attempt = None;
            effect::earlier_result(open, *holder).map(Beginning::End)
        }
        Ok(Begun::Blocked(Blocked::Runs)) => {
            open.attempt = None;
            Err(effect::in_progress())
        }
        Ok(Begun::Blocked(Blocked::Unknown(earlier))) => {
            let Some((key, _)) = open.attempt.take().and_then(|attempt| attempt.effect) else {
                // Other calls can block only a call with an effect.
                return Err(Stop::new(Outcome::Cancelled));
            };
            // A grant allows calls like this one, but not a call that may repeat an effect.
            if before_grant.is_some() {
                open.draft.decided(before_grant);
            }
            // `earlier.known` is empty here, because only the question of an approved call names earlier calls.
            Ok(Beginning::Twins(key, earlier.unknown))
        }
        Ok(Begun::Ungranted) => {
            open.attempt = None;
            // Another call took the grant's last use, so this one waits for a person.
            open.draft.decided(before_grant);
            Ok(Beginning::Ask)
        }
        Ok(Begun::Exhausted(exceeded)) => {
            open.attempt = None;
            Err(exhausted(exceeded))
        }
        Err(StoreError::RunPurged) => {
            // The ledger refused the attempt; `append` will refuse its record as well.
            open.attempt = None;
            Err(Stop::new(Outcome::Cancelled).message("This run was purged or erased. The call did not run."))
        }
        Ok(Begun::Late) => {
            open.attempt = None;
            Err(Stop::new(Outcome::ApprovalExpired))
        }
        Err(error) => Err(ledger_failure(open, error)),
    }
}

/// Returns the result of a call that runs in another process.
fn running_in_another_process(open: &OpenCall) -> ToolExecResult {
    let message = "This call is still running in another process. Do not repeat it.";
    ToolExecResult::unfinished(open.draft.id.clone(), Outcome::OutcomeUnknown, true, message)
}

/// Returns the result of the call that a person allowed with other arguments.
pub(in crate::runner) async fn replaced(open: &OpenCall) -> ToolExecResult {
    match LedgerClient(open.run()).look_up(&open.draft.id, None, |_| true).await {
        Ok(Some(Some(result))) => result,
        Ok(_) => running_in_another_process(open),
        Err(error) => {
            discard(open.run().store_unread(error));
            running_in_another_process(open)
        }
    }
}

fn ledger_failure(open: &OpenCall, error: StoreError) -> Stop {
    telemetry::not_entered(open.run(), &open.draft, &error);
    discard(error);
    if open.run().state().is_continued() {
        // Only the ledger knows whether another process began the call.
        let mut stop = Stop::new(Outcome::OutcomeUnknown);
        stop.cause = Some(Cause::Lost);
        return stop;
    }
    Stop::new(Outcome::Cancelled).message("The call could not be entered in the ledger. It did not run.")
}
