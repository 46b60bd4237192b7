//! Attempts of an engine for durable execution, such as Restate, to continue a run. The latest attempt owns the run.

use std::sync::Arc;

use jiff::Timestamp;

use crate::store::Holder;
use crate::store::{Document, Key, RunLease, StoreError, StoredRun, Transaction};

/// Takes a run for an attempt of an engine, even if an earlier attempt has it. Only one attempt at a time has a run, so
/// later writes of the earlier attempt are refused. The lease never expires, because the engine decides when the next
/// attempt begins.
///
/// `party` has the id, the principal and the tenant of the run, and is stored if the store does not have the run. A run
/// of another principal or tenant with the same id is not taken.
pub(crate) fn seize(
    transaction: &mut Transaction,
    party: &StoredRun,
    owner: &Arc<str>,
) -> Result<RunLease, StoreError> {
    let (run_id, key) = (&party.run_id, Key::run(Arc::clone(&party.run_id)));
    transaction.refuse_purged(run_id)?;
    let mut run = match transaction.get(&key) {
        // The store has the conversation of this run, so workers continue it.
        Some(Document::Run(run)) if run.has_document() => return Err(StoreError::Duplicate),
        Some(Document::Run(run)) if run.principal != party.principal || run.tenant != party.tenant => {
            return Err(StoreError::Duplicate);
        }
        // The engine retries until a person has released the run.
        Some(Document::Run(run)) if run.held_back => return Err(StoreError::Fenced),
        Some(Document::Run(run)) => (**run).clone(),
        _ => StoredRun { state: "engine".into(), ..party.clone() },
    };
    run.epoch += 1;
    run.changed = Some(transaction.now());
    run.holder = Some(Holder { owner: Arc::clone(owner), until: Timestamp::MAX });
    let held = RunLease { run_id: Arc::clone(run_id), owner: Arc::clone(owner), epoch: run.epoch };
    transaction.set(&key, Document::Run(Box::new(run)))?;
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::runs;

    #[test]
    fn the_last_attempt_has_the_run() {
        let (run, now) = (Arc::<str>::from("run"), Timestamp::UNIX_EPOCH);
        let key = || Key::run(Arc::clone(&run));
        let mut transaction = Transaction::over(now, [(key(), None)]);
        let party = StoredRun::new(Arc::clone(&run), "");
        let first = seize(&mut transaction, &party, &"one".into()).unwrap();
        runs::check(&transaction, &first).unwrap();
        let second = seize(&mut transaction, &party, &"two".into()).unwrap();
        runs::check(&transaction, &second).unwrap();
        assert!(matches!(runs::check(&transaction, &first), Err(StoreError::Fenced)));
        assert_ne!(first.epoch, second.epoch);
        // A restored store lacks a part of the run.
        let Some(Document::Run(kept)) = transaction.get(&key()) else { panic!("it is there") };
        let held = StoredRun { held_back: true, ..(**kept).clone() };
        transaction.set(&key(), Document::Run(Box::new(held))).unwrap();
        assert!(matches!(seize(&mut transaction, &party, &"three".into()), Err(StoreError::Fenced)));
        runs::check(&transaction, &second).unwrap();
        // The wake-up must not make the run due for a worker.
        runs::wake(&mut transaction, &run).unwrap();
        let worker = runs::Taker::any("worker", std::time::Duration::from_secs(1));
        assert!(runs::lease(&mut transaction, &run, &worker).unwrap().leased().is_none());
    }

    #[test]
    fn what_workers_have_is_not_taken_from_them() {
        let run = Arc::<str>::from("run");
        let key = Key::run(Arc::clone(&run));
        let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(key, None)]);
        runs::enqueue(&mut transaction, &StoredRun::new("run", "{}")).unwrap();
        let party = StoredRun::new(run, "");
        assert!(matches!(seize(&mut transaction, &party, &"one".into()), Err(StoreError::Duplicate)));
    }

    #[test]
    fn strangers_do_not_take_a_run_by_its_id() {
        let of = |principal: &str, tenant: &str| StoredRun {
            principal: Some(principal.into()),
            tenant: Some(tenant.into()),
            ..StoredRun::new("run", "")
        };
        let mut transaction = Transaction::over(Timestamp::UNIX_EPOCH, [(Key::run("run"), None)]);
        let held = seize(&mut transaction, &of("ada", "acme"), &"one".into()).unwrap();
        for stranger in [of("ada", "other"), of("bob", "acme"), StoredRun::new("run", "")] {
            assert!(matches!(seize(&mut transaction, &stranger, &"two".into()), Err(StoreError::Duplicate)));
        }
        runs::check(&transaction, &held).unwrap();
    }
}
