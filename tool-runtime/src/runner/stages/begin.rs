//! Begin: what may have an effect is entered into the ledger before it has one.

use std::sync::Arc;

use tokio::time::Instant;

use crate::call::{Cause, Decision, Outcome, ToolExecResult};
use crate::contain::discard;
use crate::registration::Purpose;
use crate::runner::accounts::{Held, Unheard};
use crate::runner::books::{Attempt, Claim};
use crate::runner::ending::{Ending, Stop, Suspended};
use crate::runner::open::OpenCall;
use crate::runner::stages::bind::Bound;
use crate::runner::stages::reserve::exhausted;
use crate::runner::{ResumeError, settle, telemetry};
use crate::store::ledger::{Begun, Intent};
use crate::store::waiting::{Taken, Then};
use crate::store::{Key, StoreError};
use crate::tool::{Execution, ToolEffect};

/// What becomes of a bound call that the store had to know of.
pub(in crate::runner) enum Beginning {
    Run(Entered),
    End(Ending),
    /// It waits for a person.
    Ask,
}

/// A bound call is entered where it has to be. Only [`begin`] and [`enter`] make one.
pub(in crate::runner) struct Entered {
    pub(super) purpose: Purpose,
}

/// Begins a call of which the store need not know. `None` for any other: it is to be [entered](enter).
///
/// A tool that only reads, or that only prepares what a client is to execute, has no effect that could happen twice:
/// it is entered only if it was approved, so that an approval is never lost. Whatever it does, it is booked on the
/// accounts of its principal and tenant first.
#[inline]
pub(in crate::runner) fn begin(open: &mut OpenCall, bound: &Bound) -> Option<Entered> {
    if is_harmless(open, bound) && open.claim.is_none() && open.grant.is_none() && bound.reserved.bill.is_none() {
        open.begin();
        return Some(Entered { purpose: Purpose::Work });
    }
    None
}

/// Whether the call has no effect that could happen twice.
fn is_harmless(open: &OpenCall, bound: &Bound) -> bool {
    let spec = &bound.reserved.hydrated.frozen.entry.spec;
    let effect = open.draft.effect().unwrap_or(spec.effect);
    effect == ToolEffect::ReadOnly || spec.execution == Execution::Client
}

/// Enters the call into the ledger, and takes it out of those that wait if it was approved: both or neither.
pub(in crate::runner) async fn enter(open: &mut OpenCall, bound: &mut Bound) -> Result<Beginning, Stop> {
    let harmless = is_harmless(open, bound);
    let spec = Arc::clone(&bound.reserved.hydrated.frozen.entry.spec);
    let claim = open.claim.take();
    let grant = open.grant.take();
    let (run, bill) = (open.run().clone(), bound.reserved.bill.take());
    if harmless && claim.is_none() && grant.is_none() {
        let begun = match bill {
            None => Ok(Begun::Now(None)),
            Some(bill) => run.book(*bill).await,
        };
        return begun_with(open, begun, None);
    }
    // A call that has its record does not begin.
    let Some(unseen) = open.draft.unseen() else { return Err(Stop::new(Outcome::Cancelled)) };
    let attempt = Attempt {
        key: Key::call(Arc::clone(run.identity()), bound.context(open).ledger_key()),
        owner: run.shared().attempt(),
        unheard: bill.as_deref().map(Unheard::of),
    };
    let intent = Intent {
        key: attempt.key.clone(),
        owner: Arc::clone(&attempt.owner),
        lease: run.shared().lease,
        unseen,
        grant: grant.as_deref().map(|(key, _)| key.clone()),
        repeatable: harmless || spec.idempotent,
        worker: run.lease().map(|lease| lease.epoch),
        ends_with_process: run.options().ends_with_process,
        bill: bill.map(|bill| *bill),
        waits: (claim.is_none() && run.state().is_continued()).then(|| run.waiting_key(&open.draft.id)),
    };
    // From here on the ledger may know the attempt, so the record of the call closes it there too.
    open.attempt = Some(Box::new(attempt.clone()));
    let asked = Instant::now();
    let begun = match claim {
        None => run.enter(intent, attempt).await,
        Some(claim) => {
            let Claim { waiting, decision, deciding } = *claim;
            open.claimed();
            let then = Then::Begin(Box::new(intent));
            let (call, noted) = (waiting.call.clone(), decision.clone());
            match run.take(Taken { call, decision: noted, ledger: None, then }, Some(attempt)).await {
                Ok(Begun::Exhausted(exceeded)) => {
                    open.unclaimed(Box::new(Claim { waiting, decision, deciding }));
                    Ok(Begun::Exhausted(exceeded))
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
                    // The store has answered: nothing of this attempt is in the ledger.
                    if matches!(error, ResumeError::NotWaiting(_)) {
                        open.attempt = None;
                    }
                    return Ok(Beginning::End(Ending::NotTaken(error)));
                }
            }
        }
    };
    let begun = match (begun, open.attempt.as_deref()) {
        (Ok(begun @ (Begun::Now(_) | Begun::Unseen)), Some(attempt)) => {
            run.confirm(attempt, asked).await.map(|()| begun)
        }
        (begun, _) => begun,
    };
    let beginning = begun_with(open, begun, grant.and_then(|grant| grant.1))?;
    if matches!(beginning, Beginning::Ask | Beginning::End(Ending::Suspended(_))) {
        // What waits counts once it is taken.
        bound.reserved.set_used(open, false);
    }
    Ok(beginning)
}

/// Continues with what the store said.
/// `asked` is what the policy had decided before a grant let the call run.
fn begun_with(
    open: &mut OpenCall,
    begun: Result<Begun, StoreError>,
    asked: Option<Decision>,
) -> Result<Beginning, Stop> {
    match begun {
        Ok(Begun::Now(booked)) => {
            open.held = booked.map(|booked| Box::new(Held::new(booked)));
            if let Some(attempt) = &mut open.attempt {
                attempt.unheard = None;
            }
            open.begin();
            Ok(Beginning::Run(Entered { purpose: Purpose::Work }))
        }
        Ok(Begun::Unseen) => {
            open.begin();
            Ok(Beginning::Run(Entered { purpose: Purpose::Reconcile }))
        }
        Ok(Begun::Finished(record)) => Ok(Beginning::End(Ending::Elsewhere(Box::new(settle::result(*record))))),
        Ok(Begun::Elsewhere) => {
            let (id, message) = (open.draft.id.clone(), "This call is still running elsewhere. Do not repeat it.");
            let result = ToolExecResult::unfinished(id, Outcome::OutcomeUnknown, true, message);
            Ok(Beginning::End(Ending::Elsewhere(Box::new(result))))
        }
        Ok(Begun::Waits(call)) => {
            open.attempt = None;
            open.draft.asks(&call);
            Ok(Beginning::End(Ending::Suspended(Suspended { suspension: call.suspension, prepared: None })))
        }
        Ok(Begun::Ungranted) => {
            open.attempt = None;
            // Another call took the last use, so a person is asked after all.
            open.draft.decided(asked);
            Ok(Beginning::Ask)
        }
        Ok(Begun::Exhausted(exceeded)) => {
            open.attempt = None;
            Err(exhausted(exceeded))
        }
        Err(error) => Err(not_entered(open, error)),
    }
}

fn not_entered(open: &OpenCall, error: StoreError) -> Stop {
    telemetry::not_entered(open.run(), &open.draft, &error);
    discard(error);
    if open.run().state().is_continued() {
        // Only the ledger knows whether another process began it.
        let mut stop = Stop::new(Outcome::OutcomeUnknown);
        stop.cause = Some(Cause::Lost);
        return stop;
    }
    Stop::new(Outcome::Cancelled).message("The call could not be entered in the ledger. It did not run.")
}
