//! Removals. A purge removes a whole run and continues its chain. An erasure keeps the place of each record.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Decider;
use crate::store::conformance::notices::noticed;
use crate::store::conformance::{ask, at, read, record, several, update, waiting};
use crate::store::{
    AuditRecord, Chain, Document, DocumentKind, Finding, HoldScope, Key, LedgerEntry, Query, RecordFilter, Retention,
    RunLease, SealedRecord, Store, StoreError, StoredRun, Verification, notices, runs,
};
use crate::tool::Hash;

const HOUR: Duration = Duration::from_secs(3600);

fn retention(store: &dyn Store) -> Retention<'_> {
    Retention::new(store, Decider::new("grace").because("The time to keep records is over."))
}

async fn of(store: &dyn Store, run: &str) -> Vec<SealedRecord> {
    store.records(&RecordFilter::run(run)).await.expect("it reads")
}

async fn verified(store: &dyn Store) -> Verification {
    let verified = Verification::of_store(store, &[], |_| {}).await.expect("it is read");
    assert_eq!(verified.findings, [], "everything is as it was sealed");
    verified
}

fn ended() -> Document {
    let record = Box::new(record("one", "a"));
    Document::Call(Box::new(LedgerEntry::closed("owner".into(), 1, at(1), record)))
}

pub(super) async fn a_purged_run_leaves_its_record(store: Arc<dyn Store>) {
    let store = &*store;
    for (run, call) in [("one", "a"), ("two", "b"), ("one", "c"), ("one", "d")] {
        store.append(record(run, call).into()).await.expect("it keeps records");
    }
    let (call, mark) = (Key::call("one", Hash([1; 32])), Key::decided(&waiting("one", "w", 9).call));
    let keys = [call.clone(), mark.clone()];
    update(store, &keys, move |transaction| {
        notices::waits(transaction, &noticed("one"), None)?;
        transaction.set(&call, ended())?;
        transaction.set(&mark, Document::Decided { until: at(9) })
    })
    .await
    .expect("it writes");
    let head = of(store, "one").await.pop().expect("a record").hash;
    let dry = retention(store).dry_run(true).purge(HOUR).await.expect("it reads");
    assert_eq!((dry.runs, dry.records, of(store, "one").await.len()), (2, 4, 3), "a dry run removes nothing");
    let purged = retention(store).purge(HOUR).await.expect("it purges");
    assert_eq!((purged.runs, purged.records, purged.kept_runs), (2, 4, 0));
    let records = of(store, "one").await;
    let [summary] = &records[..] else { panic!("one record is left of a run, not {}", records.len()) };
    assert_eq!((summary.sequence, summary.previous, summary.record.code()), (3, head, "purged"));
    for kind in [DocumentKind::Call, DocumentKind::Decided, DocumentKind::Notice] {
        let left = Query { scope: Some("one".into()), ..Query::new(kind) };
        assert!(store.list(&left).await.expect("it lists").is_empty(), "the documents of the run are gone");
    }
    let refused = ask(store, [Key::run("one")], |transaction| runs::enqueue(transaction, &StoredRun::new("one", "{}")));
    assert!(matches!(refused.await, Err(StoreError::RunPurged)), "nothing begins in a purged run");
    assert_eq!(verified(store).await.purged, 4);
    let again = retention(store).purge(Duration::ZERO).await.expect("it purges");
    assert_eq!((again.runs, again.records, again.kept_runs), (0, 0, 0), "the record of the purge stays");
}

pub(super) async fn a_closed_run_takes_no_records(store: Arc<dyn Store>) {
    let store = &*store;
    store.append(record("one", "a").into()).await.expect("it keeps records");
    retention(store).purge(HOUR).await.expect("it purges");
    store.append(record("two", "a").into()).await.expect("another run is open");
    retention(store).erase("ada", None).await.expect("it erases");
    for run in ["one", "two", "tool-runtime:retention"] {
        let count = of(store, run).await.len();
        let appended = store.append(record(run, "b").into()).await;
        assert!(matches!(appended, Err(StoreError::RunPurged)), "{run}: a record alone");
        let changed = update(store, &[Key::run(run)], move |transaction| transaction.append(record(run, "b"))).await;
        assert!(matches!(changed, Err(StoreError::RunPurged)), "{run}: a record in a transaction");
        assert_eq!(of(store, run).await.len(), count, "{run}: nothing is written");
    }
    store.append(record("three", "a").into()).await.expect("another run is open");
    verified(store).await;
}

pub(super) async fn a_purge_whose_condition_fails_writes_nothing(store: Arc<dyn Store>) {
    let store = &*store;
    store.append(record("one", "a").into()).await.expect("it keeps records");
    let sealed = of(store, "one").await.pop().expect("a record");
    let end = Chain::after(sealed.sequence, sealed.hash);
    let key = Key::of_waiting(&waiting("one", "w", 9).call);
    let open = key.clone();
    update(store, std::slice::from_ref(&key), move |transaction| {
        transaction.set(&open, Document::Waiting(Box::new(waiting("one", "w", 9))))
    })
    .await
    .expect("it writes");
    let close = async |end: Option<Chain>| {
        update(store, &[Key::run("one")], move |transaction| {
            transaction.set(&Key::run("one"), Document::Purged { at: transaction.now() })?;
            transaction.close("one".into(), end)
        })
        .await
    };
    assert!(matches!(close(Some(end)).await, Err(StoreError::Fenced)), "a call waits");
    assert!(matches!(close(None).await, Err(StoreError::Fenced)), "a call waits");
    update(store, std::slice::from_ref(&key.clone()), move |transaction| transaction.remove(&key))
        .await
        .expect("it writes");
    for wrong in [Chain::new(), Chain::after(1, sealed.hash), Chain::after(0, Hash([1; 32]))] {
        assert!(matches!(close(Some(wrong)).await, Err(StoreError::Fenced)), "the chain ends elsewhere");
    }
    assert_eq!((of(store, "one").await.len(), read(store, &Key::run("one")).await.is_none()), (1, true));
    let (call, mark) = (Key::call("one", Hash([1; 32])), Key::decided(&waiting("one", "w", 9).call));
    let keys = [call.clone(), mark.clone()];
    let written = keys.clone();
    update(store, &keys, move |transaction| {
        transaction.set(&call, ended())?;
        transaction.set(&mark, Document::Decided { until: at(9) })
    })
    .await
    .expect("it writes");
    close(None).await.expect("the condition holds");
    assert_eq!(of(store, "one").await.len(), 1, "a run that is only closed keeps its records");
    for key in written {
        assert!(read(store, &key).await.is_none(), "its documents are gone");
    }
    close(Some(end)).await.expect("the condition holds");
    assert_eq!(of(store, "one").await.len(), 0);
}

pub(super) async fn an_erased_record_keeps_its_place(store: Arc<dyn Store>) {
    let store = &*store;
    for call in ["a", "b"] {
        store.append(record("one", call).into()).await.expect("it keeps records");
    }
    let before = of(store, "one").await;
    let last = before[1].clone();
    let erase = async |hash: Hash| {
        let record = AuditRecord::Erased(Box::new(record("one", "-").into()));
        let erased = SealedRecord { record, hash, ..last.clone() };
        update(store, &[Key::run("one")], move |transaction| transaction.erase(erased.clone())).await
    };
    assert!(matches!(erase(before[0].hash).await, Err(StoreError::Fenced)), "another record is there");
    let erased = retention(store).erase("ada", None).await.expect("it erases");
    assert_eq!((erased.runs, erased.records), (1, 2));
    let after = of(store, "one").await;
    // Each page of records is erased in one transaction, with a record of the erasure.
    assert!(after.len() > 2 && after[2..].iter().all(|sealed| sealed.record.code() == "erased"));
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((old.sequence, old.hash, old.position), (new.sequence, new.hash, new.position));
        assert!(new.record.is_erased() && new.record.call_id() == old.record.call_id());
        assert!(new.record.principal().is_none() && new.record.as_call().is_some_and(|call| call.result.is_none()));
    }
    let of_ada = RecordFilter { principal: Some("ada".into()), ..RecordFilter::default() };
    assert!(store.records(&of_ada).await.expect("it reads").is_empty(), "no index has the principal");
    let verified = verified(store).await;
    assert_eq!((verified.records, verified.erased), (after.len() as u64, 2));
    erase(before[1].hash).await.expect("the condition holds");
    let found = Verification::of_store(store, &[], |_| {}).await.expect("it is read").findings;
    assert_eq!(found.iter().map(Finding::code).collect::<Vec<_>>(), ["record_changed"], "no other contents fit");
}

pub(super) async fn a_hold_and_a_purge_are_decided_in_order(store: Arc<dyn Store>) {
    const RUNS: usize = 16;
    for run in 0..RUNS {
        store.append(record(&format!("run-{run}"), "a").into()).await.expect("it keeps records");
    }
    let held = several(&store, 2 * RUNS, |store, task| async move {
        let run = format!("run-{}", task / 2);
        if task % 2 == 0 {
            return Some(retention(&*store).hold(HoldScope::Run(run.into())).await.expect("it holds").since);
        }
        retention(&*store).run(run).purge(HOUR).await.expect("it purges");
        None
    });
    for (run, since) in held.await.into_iter().step_by(2).enumerate() {
        let records = of(&*store, &format!("run-{run}")).await;
        let purged = records[0].record.as_retention().map(|record| record.at);
        assert!(purged.is_none_or(|at| Some(at) <= since), "a run that was held before is not purged");
    }
    assert_eq!(verified(&*store).await.runs, RUNS as u64 + 1);
    let report = retention(&*store).purge(HOUR).await.expect("it purges");
    assert!(report.runs == 0 && report.kept.iter().all(|(_, why)| *why == "legal_hold"));
    for hold in retention(&*store).holds().await.expect("it lists") {
        assert!(retention(&*store).lift(&hold.id).await.expect("it lifts"));
    }
    let left = retention(&*store).purge(HOUR).await.expect("it purges");
    assert_eq!(left.runs, report.kept_runs, "a run can be purged once its hold is lifted");
}

/// A lease on a run that no longer exists permits no writes.
pub(super) async fn a_worker_of_a_purged_run_writes_nothing(store: Arc<dyn Store>) {
    let store = &*store;
    store.append(record("one", "a").into()).await.expect("it keeps records");
    retention(store).purge(HOUR).await.expect("it purges");
    let lease = RunLease { run_id: "one".into(), owner: "worker".into(), epoch: 1 };
    let checked = ask(store, [Key::run("one")], move |transaction| runs::check(transaction, &lease));
    assert!(matches!(checked.await, Err(StoreError::Fenced)));
    assert!(read(store, &Key::run("one")).await.is_some(), "the mark stays");
}
