//! The ledger and the leases of runs, with several who want the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::call::Outcome;
use crate::store::conformance::{record, run, update};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::runs::{Next, Progress};
use crate::store::{Document, Key, RecordFilter, RunLease, Store, StoreError, StoredRun, Transaction, runs};
use crate::tool::Hash;

const LONG: Duration = Duration::from_secs(600);

fn key() -> Key {
    Key::call("run", Hash([1; 32]))
}

fn intent(owner: &str, lease: Duration) -> Intent {
    let mut unseen = record("run", "a");
    (unseen.ended_at, unseen.outcome) = (None, Outcome::OutcomeUnknown);
    Intent { key: key(), owner: owner.into(), lease, unseen, grant: None, repeatable: false, worker: None, bill: None }
}

/// Changes documents, and returns what the change returned.
async fn ask<T: Send + 'static>(
    store: &dyn Store,
    key: Key,
    mut change: impl FnMut(&mut Transaction) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let answer = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&answer);
    let change = move |transaction: &mut Transaction| {
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(change(transaction)?);
        Ok(())
    };
    update(store, &[key], change).await?;
    let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(answer.expect("a change that was kept was run"))
}

async fn begin(store: &dyn Store, owner: &str, lease: Duration) -> Begun {
    let intent = intent(owner, lease);
    ask(store, key(), move |transaction| ledger::begin(transaction, &intent)).await.expect("the ledger answers")
}

async fn finish(store: &dyn Store, owner: &'static str) -> Result<(), StoreError> {
    let finish = move |transaction: &mut Transaction| {
        ledger::finish(transaction, &key(), &owner.into(), &record("run", "a")).map(drop)
    };
    ask(store, key(), finish).await
}

async fn outcomes(store: &dyn Store) -> Vec<&'static str> {
    let records = store.calls(&RecordFilter::run("run")).await.expect("it reads");
    records.iter().map(|record| record.outcome.code()).collect()
}

pub(super) async fn a_call_begins_once(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..16)
        .map(|owner| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { (owner, begin(&*store, &format!("owner {owner}"), LONG).await) })
        })
        .collect();
    let mut first = None;
    for task in tasks {
        match task.await.expect("no task fails") {
            (owner, Begun::Now(_)) => assert_eq!(first.replace(owner), None, "a call begins once"),
            (_, begun) => assert!(matches!(begun, Begun::Elsewhere), "it runs elsewhere: {begun:?}"),
        }
    }
    let first = format!("owner {}", first.expect("a call begins"));
    for _again in 0..2 {
        let owner = Arc::from(first.as_str());
        let end = move |transaction: &mut Transaction| ledger::finish(transaction, &key(), &owner, &record("run", "a"));
        ask(&*store, key(), end).await.expect("its owner finishes it");
    }
    assert_eq!(outcomes(&*store).await, ["ok"], "a call has one record");
    assert!(matches!(begin(&*store, "late", LONG).await, Begun::Finished(_)), "what ended does not begin");
}

pub(super) async fn a_call_whose_owner_is_gone_is_taken_over(store: &dyn Store) {
    assert!(matches!(begin(store, "one", Duration::ZERO).await, Begun::Now(_)));
    assert!(matches!(begin(store, "two", LONG).await, Begun::Unseen), "who takes it over does not run it");
    let late = finish(store, "one").await.expect_err("it lost the call");
    assert_eq!(late.code(), StoreError::Fenced.code(), "who lost a call cannot write");
    assert!(outcomes(store).await.is_empty(), "what was refused left no record");
    finish(store, "two").await.expect("it has the call");
    assert_eq!(outcomes(store).await, ["ok"]);
}

pub(super) async fn a_call_that_nobody_saw_end_is_closed_once(store: Arc<dyn Store>) {
    assert!(matches!(begin(&*store, "one", Duration::ZERO).await, Begun::Now(_)));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                ask(&*store, key(), |transaction| ledger::close_unseen(transaction, &key(), None))
                    .await
                    .expect("it answers")
            })
        })
        .collect();
    let mut closed = 0;
    for task in tasks {
        closed += usize::from(task.await.expect("no task fails"));
    }
    assert_eq!((closed, outcomes(&*store).await), (1, vec!["outcome_unknown"]), "one record says so");
}

async fn lease(store: &dyn Store, owner: String, by: Duration) -> Option<(RunLease, StoredRun)> {
    let take = move |transaction: &mut Transaction| runs::lease(transaction, &"run".into(), &owner.as_str().into(), by);
    ask(store, Key::run("run"), take).await.expect("it answers")
}

async fn save(store: &dyn Store, lease: &RunLease, document: &str, next: Next) -> Result<(), StoreError> {
    let lease = lease.clone();
    let progress =
        Progress { document: Some(document.into()), state: "running".into(), taken: None, failures: 0, next };
    ask(store, Key::run("run"), move |transaction| runs::save(transaction, &lease, &progress)).await
}

pub(super) async fn a_run_has_one_worker(store: Arc<dyn Store>) {
    let put = |transaction: &mut Transaction| {
        let Document::Run(mut due) = run("run", "0") else { return Err(StoreError::Lost) };
        due.due = Some(super::at(0));
        transaction.set(&Key::run("run"), Document::Run(due))
    };
    ask(&*store, Key::run("run"), put).await.expect("it writes");
    let (gone, _) = lease(&*store, "gone".to_owned(), Duration::ZERO).await.expect("it is due");
    let tasks: Vec<_> = (0..8)
        .map(|owner| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { lease(&*store, format!("worker {owner}"), LONG).await })
        })
        .collect();
    let mut held = Vec::new();
    for task in tasks {
        held.extend(task.await.expect("no task fails"));
    }
    assert_eq!(held.len(), 1, "a run has one worker");
    let (held, taken) = held.remove(0);
    let fenced = save(&*store, &gone, "late", Next::Keep).await.expect_err("its lease ended");
    assert_eq!(fenced.code(), StoreError::Fenced.code(), "a worker without its lease cannot write");
    save(&*store, &held, "0", Next::Keep).await.expect("it has the run");
    let release = Next::Release { due: Some(super::at(0)), news: taken.news };
    save(&*store, &held, "1", release).await.expect("it gives it back");
    let (_, run) = lease(&*store, "next".to_owned(), LONG).await.expect("it is due and nobody has it");
    assert_eq!(&*run.document, "1", "the next worker continues where the last one ended");
}
