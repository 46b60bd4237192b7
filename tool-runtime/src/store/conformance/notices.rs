//! Notices: a change may add documents under keys that it did not name.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::policy::{NoticeEvent, NoticeTerms};
use crate::store::conformance::{ask, listed, several, update, waiting};
use crate::store::notices::{self, Tried};
use crate::store::{
    DocumentKind, Key, NoticeAttempt, Query, Store, StoredNotice, Transaction, Waiting, waiting as waits,
};

/// Returns a suspended call with a notice.
pub(super) fn noticed(run: &str) -> Waiting {
    let terms = NoticeTerms { events: [NoticeEvent::Waiting].into(), ..NoticeTerms::default() };
    Waiting { notices: Some(Arc::new(terms)), ..waiting(run, "a", 1_000_000_000) }
}

async fn suspend(store: &dyn Store) {
    let suspended = noticed("run");
    let keys = waits::keys(&suspended.call);
    let suspend = move |transaction: &mut Transaction| waits::suspend(transaction, &suspended).map(drop);
    update(store, &keys, suspend).await.expect("it writes");
}

async fn all(store: &dyn Store) -> Vec<StoredNotice> {
    let notices = StoredNotice::all(store, None).await.expect("it lists");
    notices.into_iter().collect::<Result<_, _>>().expect("it reads")
}

pub(super) async fn notices_that_a_change_adds_are_kept(store: Arc<dyn Store>) {
    let store = &*store;
    for _ in 0..2 {
        suspend(store).await;
        let notices = all(store).await;
        let found: Vec<_> = notices.iter().map(|notice| (&*notice.event, &*notice.run_id, notice.state())).collect();
        assert_eq!(found, [("call.waiting", "run", "pending")], "the change that suspends a call adds a notice, once");
    }
    let due = Query { due: Some(store.now().await.expect("a time")), ..Query::new(DocumentKind::Notice) };
    let listed = listed(store, due).await;
    assert_eq!(listed.len(), 1, "it is due");
    assert!(store.read(&[listed[0].key.clone()]).await.expect("it reads")[0].is_some(), "it is found by its key");
    let notice = all(store).await.remove(0);
    assert!(notice.retry(store).await.expect("it writes"), "it can be changed");
    assert_eq!(store.sweep().await.expect("it sweeps"), 0, "it is kept for a week");
}

pub(super) async fn a_notice_has_one_sender_at_a_time(store: Arc<dyn Store>) {
    suspend(&*store).await;
    let notice = all(&*store).await.remove(0);
    let key = Key::notice(Arc::clone(&notice.run_id), Arc::clone(&notice.id));
    let owner = |number: usize| Arc::<str>::from(format!("owner {number}"));
    let claim = |store: Arc<dyn Store>, number| {
        let (key, named, owner) = (key.clone(), key.clone(), owner(number));
        async move {
            let claim = move |transaction: &mut Transaction| {
                notices::claim(transaction, &named, &owner, Duration::from_secs(3600)).map(|claimed| claimed.is_some())
            };
            ask(&*store, [key], claim).await.expect("it answers")
        }
    };
    let claimed = several(&store, 8, claim).await;
    assert_eq!(claimed.iter().filter(|claimed| **claimed).count(), 1, "one process claims it");
    let sender = claimed.iter().position(|claimed| *claimed).expect("one process has it");
    let at = Timestamp::UNIX_EPOCH;
    for (number, state) in [(sender + 1, "pending"), (sender, "delivered"), (sender + 1, "delivered")] {
        let (named, owner) = (key.clone(), owner(number));
        let tried = Tried { attempt: NoticeAttempt { at, status: Some(204), code: None }, wait: None };
        let settle = move |transaction: &mut Transaction| notices::settle(transaction, &named, &owner, &tried);
        ask(&*store, [key.clone()], settle).await.expect("it answers");
        let notice = all(&*store).await.remove(0);
        assert_eq!(notice.state(), state, "the process that has it records the result");
    }
}
