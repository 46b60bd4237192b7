//! The ledger, with concurrent attempts at one call.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Outcome;
use crate::store::conformance::{ask, record, several};
use crate::store::ledger::{self, Begun, Intent};
use crate::store::{Key, RecordFilter, Store, StoreError, Transaction};
use crate::tool::Hash;

pub(super) const LONG: Duration = Duration::from_secs(600);

pub(in crate::store) fn key() -> Key {
    Key::call("run", Hash([1; 32]))
}

pub(in crate::store) fn intent(owner: &str, lease: Duration) -> Intent {
    let mut lost_record = record("run", "a");
    (lost_record.ended_at, lost_record.outcome) = (None, Outcome::OutcomeUnknown);
    Intent {
        key: key(),
        owner: owner.into(),
        lease,
        lost_record,
        grant: None,
        repeatable: false,
        reconciles: false,
        worker: None,
        ends_with_process: false,
        graph: None,
        waited: None,
        bill: None,
        waits: None,
        effect: None,
        notices: None,
    }
}

async fn begin(store: &dyn Store, owner: &str, lease: Duration) -> Begun {
    let intent = intent(owner, lease);
    ask(store, [key()], move |transaction| ledger::begin(transaction, &intent)).await.expect("the ledger answers")
}

async fn finish(store: &dyn Store, owner: &'static str) -> Result<(), StoreError> {
    let finish = move |transaction: &mut Transaction| {
        ledger::finish(transaction, &key(), &owner.into(), &record("run", "a"), None, None).map(drop)
    };
    ask(store, [key()], finish).await
}

async fn outcomes(store: &dyn Store) -> Vec<&'static str> {
    let records = store.calls(&RecordFilter::run("run")).await.expect("it reads");
    records.iter().map(|record| record.outcome.code()).collect()
}

pub(super) async fn a_call_begins_once(store: Arc<dyn Store>) {
    let begin_as = |store: Arc<dyn Store>, owner| async move { begin(&*store, &format!("owner {owner}"), LONG).await };
    let mut first = None;
    for (owner, begun) in several(&store, 16, begin_as).await.into_iter().enumerate() {
        match begun {
            Begun::Now { .. } => assert_eq!(first.replace(owner), None, "a call begins once"),
            begun => assert!(matches!(begun, Begun::Elsewhere), "another process runs it: {begun:?}"),
        }
    }
    let first = format!("owner {}", first.expect("a call begins"));
    for _again in 0..2 {
        let owner = Arc::from(first.as_str());
        let end = move |transaction: &mut Transaction| {
            ledger::finish(transaction, &key(), &owner, &record("run", "a"), None, None)
        };
        ask(&*store, [key()], end).await.expect("its owner finishes it");
    }
    assert_eq!(outcomes(&*store).await, ["ok"], "a call has one record");
    assert!(matches!(begin(&*store, "late", LONG).await, Begun::Finished(_)), "a finished call does not begin again");
}

pub(super) async fn a_call_whose_owner_is_gone_is_taken_over(store: Arc<dyn Store>) {
    let store = &*store;
    assert!(matches!(begin(store, "one", Duration::ZERO).await, Begun::Now { .. }));
    assert!(
        matches!(begin(store, "two", LONG).await, Begun::Abandoned),
        "a process that takes a call over does not run it"
    );
    let late = finish(store, "one").await.expect_err("it lost the call");
    assert_eq!(late.code(), StoreError::Fenced.code(), "a process that lost its call cannot write");
    assert!(outcomes(store).await.is_empty(), "a refused write left no record");
    finish(store, "two").await.expect("it has the call");
    assert_eq!(outcomes(store).await, ["ok"]);
}

pub(super) async fn an_abandoned_call_is_closed_once(store: Arc<dyn Store>) {
    assert!(matches!(begin(&*store, "one", Duration::ZERO).await, Begun::Now { .. }));
    let close = |store: Arc<dyn Store>, _| async move {
        let close = |transaction: &mut Transaction| ledger::close_abandoned(transaction, &key(), None);
        ask(&*store, [key()], close).await.expect("it answers")
    };
    let closed = several(&store, 8, close).await.into_iter().filter(|closed| *closed).count();
    assert_eq!((closed, outcomes(&*store).await), (1, vec!["outcome_unknown"]), "one process closes the call");
}
