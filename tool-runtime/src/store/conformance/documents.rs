//! Documents: transactions, queries, and tasks that wait for changes.

use std::sync::Arc;

use jiff::Timestamp;

use crate::store::conformance::records::calls;
use crate::store::conformance::{ask, at, listed, read, record, run, text, update};
use crate::store::{
    Chain, Document, DocumentKind, Key, Query, RecordFilter, Store, StoreError, StoredRun, Transaction,
};

pub(super) async fn a_change_is_whole_or_nothing(store: Arc<dyn Store>) {
    let store = &*store;
    let keys = [Key::run("one"), Key::run("two")];
    let both = keys.clone();
    let write = move |transaction: &mut Transaction| {
        transaction.set(&both[0], run("one", "1"))?;
        transaction.set(&both[1], run("two", "2"))?;
        transaction.append(record("one", "a"))
    };
    update(store, &keys, write).await.expect("it writes");
    let refused = keys.clone();
    let refuse = move |transaction: &mut Transaction| {
        transaction.set(&refused[0], run("one", "changed"))?;
        transaction.remove(&refused[1])?;
        transaction.append(record("one", "b"))?;
        Err(StoreError::Duplicate)
    };
    let error = update(store, &keys, refuse).await.expect_err("the change refused");
    assert_eq!(error.code(), StoreError::Duplicate.code(), "the handle has the error of the change");
    let documents = store.read(&keys).await.expect("it reads");
    let texts: Vec<_> =
        documents.iter().map(|document| text(document.as_ref().map(|stored| &stored.document))).collect();
    assert_eq!(texts, [Some("1"), Some("2")], "a refused change writes nothing");
    let records = store.records(&RecordFilter::default()).await.expect("it reads");
    assert_eq!(calls(&records), ["a"], "a refused change appends nothing");
    let removed = keys[1].clone();
    update(store, &keys[1..], move |transaction| transaction.remove(&removed)).await.expect("it removes");
    assert!(read(store, &keys[1]).await.is_none(), "a removed document is gone");
    assert!(read(store, &Key::run("three")).await.is_none(), "a document that was never written is absent");
}

pub(super) async fn a_change_touches_its_keys_only(store: Arc<dyn Store>) {
    let store = &*store;
    let named = [Key::run("one")];
    let other = |transaction: &mut Transaction| transaction.set(&Key::run("two"), run("two", "2"));
    let error = update(store, &named, other).await.expect_err("it was not named");
    assert_eq!(error.code(), StoreError::NotLocked.code(), "a document that was not named");
    let error = update(store, &named, |transaction| transaction.append(record("two", "a"))).await;
    assert_eq!(error.expect_err("it was not named").code(), StoreError::NotLocked.code(), "a run that was not named");
}

pub(super) async fn changes_under_one_lock_follow_each_other(store: Arc<dyn Store>) {
    let mut tasks = Vec::new();
    for writer in 0..8 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for turn in 0..8 {
                let key = Key::run("shared");
                let (named, id) = ([key.clone()], format!("{writer}-{turn}"));
                let add = move |transaction: &mut Transaction| {
                    let before: u32 = text(transaction.get(&key)).and_then(|text| text.parse().ok()).unwrap_or(0);
                    transaction.set(&key, run("shared", &(before + 1).to_string()))?;
                    transaction.append(record("shared", &id))
                };
                update(&*store, &named, add).await.expect("it writes");
            }
        }));
    }
    for task in tasks {
        task.await.expect("no writer fails");
    }
    let document = read(&*store, &Key::run("shared")).await;
    assert_eq!(text(document.as_ref()), Some("64"), "no change is lost");
    let records = store.records(&RecordFilter::run("shared")).await.expect("it reads");
    assert_eq!((records.len(), Chain::verify(&records)), (64, Ok(())), "the chain has every record, in order");
}

pub(super) async fn a_change_happens_although_its_handle_is_dropped(store: Arc<dyn Store>) {
    let store = &*store;
    let key = Key::run("one");
    let named = key.clone();
    drop(store.update(vec![key.clone()], Box::new(move |transaction| transaction.set(&named, run("one", "kept")))));
    drop(store.append(record("one", "a").into()));
    store.flush().await.expect("it flushes");
    assert_eq!(text(read(store, &key).await.as_ref()), Some("kept"), "the change happened before the flush returned");
    let records = store.records(&RecordFilter::run("one")).await.expect("it reads");
    assert_eq!(calls(&records), ["a"], "the record was kept before the flush returned");
}

pub(super) async fn documents_are_listed_in_order(store: Arc<dyn Store>) {
    let store = &*store;
    for id in ["b", "a", "c"] {
        let key = Key::run(id);
        let named = key.clone();
        update(store, &[key], move |transaction| transaction.set(&named, run(named.scope(), "1")))
            .await
            .expect("writes");
    }
    // A second write does not change a document's position.
    let key = Key::run("b");
    update(store, &[Key::run("b")], move |transaction| transaction.set(&key, run("b", "2"))).await.expect("it writes");
    let all = listed(store, Query::new(DocumentKind::Run)).await;
    let scopes: Vec<_> = all.iter().map(|listed| &**listed.key.scope()).collect();
    assert_eq!(scopes, ["b", "a", "c"], "in the order in which they were first written");
    let page = Query { limit: 1, after: all[0].position, ..Query::new(DocumentKind::Run) };
    let page = store.list(&page).await.expect("it lists");
    assert_eq!(page.iter().map(|listed| &listed.key).collect::<Vec<_>>(), [&Key::run("a")], "one page");
    let scope = Query { scope: Some("c".into()), ..Query::new(DocumentKind::Run) };
    assert_eq!(listed(store, scope).await.len(), 1, "of one scope");
    assert!(store.list(&Query::new(DocumentKind::Call)).await.expect("it lists").is_empty(), "of another kind");
}

pub(super) async fn due_documents_are_listed(store: Arc<dyn Store>) {
    let store = &*store;
    for (id, due) in [("early", Some(at(10))), ("late", Some(at(20))), ("never", None)] {
        let key = Key::run(id);
        let named = key.clone();
        let write = move |transaction: &mut Transaction| {
            let due = StoredRun { due, ..StoredRun::new(named.scope().clone(), "1") };
            transaction.set(&named, Document::Run(Box::new(due)))
        };
        update(store, &[key], write).await.expect("it writes");
    }
    for (now, expected) in [(at(9), 0), (at(10), 1), (at(20), 2), (Timestamp::MAX, 2)] {
        let query = Query { due: Some(now), ..Query::new(DocumentKind::Run) };
        assert_eq!(listed(store, query).await.len(), expected, "due at {now}");
    }
}

pub(super) async fn waiting_tasks_are_woken(store: Arc<dyn Store>) {
    let (key, due) = (Key::run("due"), Query { due: Some(at(1)), ..Query::new(DocumentKind::Run) });
    let (waiter, (waits, looked)) = (Arc::clone(&store), tokio::sync::oneshot::channel());
    let woken = tokio::spawn(async move {
        let mut waits = Some(waits);
        while waiter.list(&due).await.expect("it lists").is_empty() {
            waits.take().map(|waits| waits.send(()));
            waiter.changed().await;
        }
    });
    looked.await.expect("nothing is due at first");
    let named = key.clone();
    let write = move |transaction: &mut Transaction| {
        let run = StoredRun { due: Some(at(0)), ..StoredRun::new("due", "1") };
        transaction.set(&named, Document::Run(Box::new(run)))
    };
    update(&*store, &[key], write).await.expect("it writes");
    woken.await.expect("it lists");
}

pub(super) async fn the_time_is_that_of_transactions(store: Arc<dyn Store>) {
    let before = store.now().await.expect("a time");
    let within = ask(&*store, Vec::new(), |transaction| Ok(transaction.now())).await.expect("a transaction");
    let after = store.now().await.expect("a time");
    assert!(before <= within && within <= after, "the store has one clock: {before}, {within}, {after}");
}
