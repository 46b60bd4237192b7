//! The sweep removes expired documents, and no others.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::call::{CallId, Decider};
use crate::policy::{Holder, Spend, Window};
use crate::store::conformance::grants::{grant, keep};
use crate::store::conformance::{at, listed, read, record, run, update, waiting};
use crate::store::{
    Clock as _, Document, DocumentKind, Key, Query, RecordFilter, Retention, Store, StoredAccount, StoredGrant,
    SystemClock, Transaction,
};

/// More documents than one transaction removes.
const MANY: usize = 200;

/// Stores the account of a principal whose window ends at `until`.
async fn account(store: &dyn Store, principal: &str, until: Timestamp) -> Key {
    let key = Key::account(Holder::Principal, None, Some(principal), Window::LONGEST);
    let account = StoredAccount {
        tenant: None,
        principal: Some(principal.into()),
        holder: Holder::Principal,
        from: at(0),
        until,
        booked: Spend::default(),
        mark: 0,
    };
    let named = key.clone();
    let write = move |transaction: &mut Transaction| transaction.set(&named, Document::Account(account.clone().into()));
    update(store, std::slice::from_ref(&key), write).await.expect("it writes");
    key
}

pub(super) async fn expired_documents_are_swept(store: Arc<dyn Store>) {
    let store = &*store;
    for number in 0..MANY {
        account(store, &format!("over {number}"), at(1)).await;
    }
    // These expired too recently to be removed, because a clock may jump back by some days.
    let lately = SystemClock.now().saturating_sub(Duration::from_secs(6 * 86_400)).expect("a time");
    let mut stays = vec![account(store, "now", Timestamp::MAX).await, account(store, "lately", lately).await];
    keep(store, grant("over", None, Some(at(1)))).await;
    for (id, expires_at) in [("never", None), ("later", Some(Timestamp::MAX)), ("lately", Some(lately))] {
        stays.push(keep(store, grant(id, Some(1), expires_at)).await);
    }
    // An expired suspended call and a due run stay, because the run ends the call with a record, and a worker continues
    // the run.
    let others = [Key::waiting("run", None, Some("ada"), &CallId::new("a")), Key::run("run")];
    let named = others.clone();
    let write = move |transaction: &mut Transaction| {
        transaction.set(&named[0], Document::Waiting(Box::new(waiting("run", "a", 1))))?;
        transaction.set(&named[1], run("run", "1"))?;
        transaction.append(record("run", "b"))
    };
    update(store, &others, write).await.expect("it writes");
    stays.extend(others);

    let removed = store.sweep().await.expect("it sweeps");
    assert_eq!(removed, MANY as u64 + 1, "a document that expired a week ago is removed");
    assert_eq!(store.sweep().await.expect("it sweeps"), 0, "once");
    for key in &stays {
        assert!(read(store, key).await.is_some(), "{key:?} is still needed");
    }
    let left = listed(store, Query::new(DocumentKind::Account)).await;
    assert_eq!(left.len(), 2, "accounts whose window is over are gone");
    assert_eq!(store.records(&RecordFilter::default()).await.expect("it reads").len(), 1, "records stay");
}

pub(super) async fn what_a_legal_hold_covers_is_not_swept(store: Arc<dyn Store>) {
    let store = &*store;
    let of = |principal: &str| StoredGrant { principal: Some(principal.into()), ..grant(principal, None, Some(at(1))) };
    let (held, other) = (keep(store, of("ada")).await, keep(store, of("bob")).await);
    let retention = Retention::new(store, Decider::new("grace"));
    retention.hold_principal("ada", None).await.expect("it holds");
    assert_eq!(store.sweep().await.expect("it sweeps"), 1);
    assert!(read(store, &held).await.is_some() && read(store, &other).await.is_none());
    let due = Query { due: Some(store.now().await.expect("a time")), ..Query::new(DocumentKind::Grant) };
    let past = Query { due: Some(at(2)), ..due.clone() };
    assert!(store.list(&past).await.expect("it lists").is_empty(), "the next sweeps skip it");
    assert_eq!(listed(store, due).await.len(), 1);
}
