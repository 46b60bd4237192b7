//! Clocks that jump back: no lease is shortened, and no anchor is lost.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::conformance::record;
use crate::store::runs::{self, Taker};
use crate::store::{
    Clock, Document, DocumentKind, Key, MemoryStore, Query, RunLease, Store, StoreError, StoredRun, Transaction,
    Verification,
};
use crate::testing::ManualClock;

const LEASE: Duration = Duration::from_secs(30);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// A run that workers share. Successive transactions change it.
struct Shared(Document);

impl Shared {
    fn at<T>(
        &mut self,
        second: i64,
        change: impl FnOnce(&mut Transaction) -> Result<T, StoreError>,
    ) -> Result<T, &'static str> {
        let mut transaction = Transaction::over(at(second), [(Key::run("run"), Some(self.0.clone()))]);
        let answer = change(&mut transaction).map_err(|error| error.code())?;
        if let Some((_, Some(document))) = transaction.into_writes().0.pop() {
            self.0 = document.document;
        }
        Ok(answer)
    }

    fn lease(&mut self, second: i64, owner: &str) -> Option<RunLease> {
        let taker = Taker::any(owner, LEASE);
        let leased = self.at(second, |transaction| runs::lease(transaction, &"run".into(), &taker)).unwrap();
        leased.leased().map(|(lease, _)| lease)
    }
}

#[test]
fn a_worker_keeps_its_run_for_as_long_as_it_was_told() {
    let mut run = Shared(Document::Run(Box::new(StoredRun { due: Some(at(0)), ..StoredRun::new("run", "saved") })));
    let held = run.lease(100, "one").unwrap();
    for now in [100, 40, -900, 99] {
        run.at(now, |transaction| runs::renew(transaction, &held, LEASE)).unwrap();
        assert!(run.lease(129, "two").is_none(), "renewed at {now}");
    }
    run.at(129, |transaction| runs::renew(transaction, &held, LEASE)).unwrap();
    assert!(run.lease(158, "two").is_none());
    let next = run.lease(159, "two").unwrap();
    assert_eq!(next.epoch, held.epoch + 1);
    // By the earlier time, the first worker's lease has not ended, but the run has another owner.
    assert_eq!(run.at(10, |transaction| runs::check(transaction, &held)), Err("store_fenced"));
}

#[tokio::test]
async fn anchors_follow_each_other_whatever_the_clock_says() {
    let clock = Arc::new(ManualClock::at(at(10_000)));
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    for (number, second) in [10_000, 10_400, 9_000, 9_001, 20_000, 0].into_iter().enumerate() {
        clock.set(at(second));
        assert_eq!(clock.now(), at(second));
        store.append(record(&format!("run_{}", number % 2), &number.to_string()).into()).await.unwrap();
        assert_eq!((&store as &dyn Store).anchor(|_| ()).await.unwrap(), 1, "{second}");
        assert_eq!((&store as &dyn Store).anchor(|_| ()).await.unwrap(), 0, "{second}: nothing is anchored twice");
    }
    let anchors = store.list(&Query::new(DocumentKind::Anchor)).await.unwrap();
    let heads = anchors.iter().filter_map(|listed| match &listed.document {
        Document::Anchor(anchor) => Some(anchor.heads.len()),
        _ => None,
    });
    assert_eq!(heads.collect::<Vec<_>>(), [1; 6]);
    assert_eq!(Verification::of_store(&store, &[], |_| ()).await.unwrap().unanchored, 0);
}
