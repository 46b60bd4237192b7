//! Twins: calls with the same effect as an earlier call whose outcome is unknown. Two calls have the same effect if
//! they have the same effect key (`once`) or, without one, the same tool and arguments.

use std::sync::Arc;

use crate::call::{Cause, Decision, Intervention, JsonText, Outcome, Verdict};
use crate::contain::discard;
use crate::registration::Purpose;
use crate::runner::Run;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::begin::Entered;
use crate::runner::gate::stages::bind::Bound;
use crate::runner::gate::stages::earlier::EarlierCall;
use crate::runner::gate::stages::run::{Left, run};
use crate::store::effects::{self, Settlement};
use crate::store::{Key, StoreError, StoredUnknown, Transaction, UnknownCall, ledger, transact};

/// The rule in the record and in the question of a twin that waits for a person.
const RULE: &str = "unknown_outcome";

/// Lets the tool reconcile the earlier call, if the tool can and there is only one. Returns the output of the earlier
/// call if that call took effect, and stops this call if it did not. `None` if the outcome stays unknown.
pub(in crate::runner) async fn reconcile_twin(
    open: &mut OpenCall,
    bound: &mut Bound,
    key: &Key,
    unknown: &[StoredUnknown],
) -> Result<Option<Left>, Stop> {
    let frozen = Arc::clone(&bound.reserved.hydrated.frozen);
    // One reconciliation consumes the typed arguments, so a person decides if several outcomes are unknown.
    let [earlier] = unknown else { return Ok(None) };
    if !frozen.entry.behaviour.may_reconcile() {
        return Ok(None);
    }
    let call = &earlier.call;
    let Some(earlier) = EarlierCall::of(&frozen, earlier) else { return Ok(None) };
    bound.earlier = Some(Arc::new(earlier));
    let left = reconcile(open, bound).await;
    bound.earlier = None;
    match left {
        Ok(Left::Output(projected)) => {
            settle(open.run(), key, call, Some(projected.shown.clone())).await;
            let earlier = Intervention::Earlier { run_id: Arc::clone(&call.run_id), call_id: call.call_id.clone() };
            open.draft.intervened(earlier);
            Ok(Some(Left::Output(projected)))
        }
        Err(stop) if stop.cause == Some(Cause::Prevented) => {
            settle(open.run(), key, call, None).await;
            let message = "The earlier attempt at this effect did nothing. This call did not run either; it may be made \
                           again.";
            Err(stop.message(message))
        }
        // Only a graph waits, and a graph is never a twin.
        Ok(Left::Waits(_)) => Ok(None),
        Err(stop) => {
            discard(stop);
            Ok(None)
        }
    }
}

/// Lets the tool reconcile the call.
pub(in crate::runner) async fn reconcile(open: &mut OpenCall, bound: &mut Bound) -> Result<Left, Stop> {
    // Without a limit, a reconciliation that never ends would hold the run forever.
    bound.reserved.timeout.get_or_insert(open.run().shared().lease);
    run(open, bound, Entered { purpose: Purpose::Reconcile }).await
}

/// Writes the outcome of the earlier call. If the store fails, the next call of the effect reconciles it again.
async fn settle(run: &Run, key: &Key, call: &UnknownCall, result: Option<JsonText>) {
    let (lease, mut keys) = (run.lease(), run.keys());
    keys.extend(effects::settling_keys(key, call));
    let (key, call, settlement) = (key.clone(), call.clone(), Settlement { result, decider: None });
    let change = move |transaction: &mut Transaction| {
        ledger::check(transaction, lease.as_ref())?;
        ledger::settle(transaction, &key, &call, &settlement)
    };
    let settled: Result<bool, StoreError> = transact(&run.shared().store, keys, change).await;
    if let Err(error) = settled {
        discard(run.store_unread(error));
    }
}

/// Returns the decision that requires an approval, or the stop of the call if the runner allows no approvals.
pub(in crate::runner) fn ask_about_twins(open: &OpenCall) -> Result<Decision, Stop> {
    let shared = open.run().shared();
    if shared.effective(Verdict::RequireApproval) == Verdict::Deny {
        let message = "An earlier call of the same effect has an unknown outcome: it may have had the effect. \
                       This call did not run. Do not repeat it; look up the effect, or ask the user.";
        return Err(Stop::new(Outcome::Cancelled).message(message));
    }
    Ok(Decision { verdict: Verdict::RequireApproval, rule: RULE.into() })
}
