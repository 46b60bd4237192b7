//! Runs that workers share: their documents, their leases and their messages.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Question;
use crate::store::Holder;
use crate::store::conformance::ledger::LONG;
use crate::store::conformance::{ask, at, listed, read, run, several, update};

use crate::store::runs::{AfterUpdate, Due, Leasing, RunUpdate, Taker};
use crate::store::{
    Document, DocumentKind, Key, Query, RunLease, Store, StoreError, StoredRun, Transaction, posts, runs,
};
use crate::tool::Hash;

pub(super) async fn runs_are_kept(store: Arc<dyn Store>) {
    let store = &*store;
    let stored = StoredRun {
        principal: Some("ada\0".into()),
        tenant: Some("".into()),
        state: "waits\\\u{1f980}".into(),
        due: Some(at(5)),
        holder: Some(Holder { owner: "one'".into(), until: at(9) }),
        epoch: u64::MAX,
        news: u64::MAX,
        posts: u32::MAX,
        answers: vec![Question::unknown(&"'\0".into())],
        failures: u32::MAX,
        version: Some(Hash([255; 32])),
        ..StoredRun::new("run", "\0")
    };
    let written = stored.clone();
    let write =
        move |transaction: &mut Transaction| transaction.set(&Key::run("run"), Document::Run(written.clone().into()));
    update(store, &[Key::run("run")], write).await.expect("it writes");
    let json = |run: &StoredRun| serde_json::to_value(run).expect("JSON");
    match read(store, &Key::run("run")).await {
        Some(Document::Run(read)) => assert_eq!(json(&read), json(&stored), "a run reads as it was written"),
        other => panic!("a run reads as a run: {other:?}"),
    }
    for (now, due) in [(at(8), 0), (at(9), 1)] {
        let query = Query { due: Some(now), ..Query::new(DocumentKind::Run) };
        assert_eq!(listed(store, query).await.len(), due, "a run is due once its worker is gone");
    }
}

async fn lease(store: &dyn Store, owner: String, lease_duration: Duration) -> Option<(RunLease, StoredRun)> {
    let taker = Taker { owner: owner.into(), lease_duration, version: None, per_tenant: None };
    let take = move |transaction: &mut Transaction| runs::lease(transaction, &"run".into(), &taker);
    match ask(store, [Key::run("run")], take).await.expect("it answers") {
        Leasing::Leased(lease, run) => Some((lease, *run)),
        Leasing::Gone | Leasing::Full => None,
    }
}

async fn save(
    store: &dyn Store,
    lease: &RunLease,
    document: &str,
    taken: Option<Key>,
    next: AfterUpdate,
) -> Result<(), StoreError> {
    let keys: Vec<_> = std::iter::once(Key::run("run")).chain(taken.clone()).collect();
    let lease = lease.clone();
    let (document, state) = (Some(document.into()), Some("running".into()));
    let update = RunUpdate { document, state, version: None, taken, failures: 0, next };
    ask(store, keys, move |transaction| runs::save(transaction, &lease, &update)).await
}

/// Stores a run that is due.
async fn enqueue(store: &dyn Store) {
    let put = |transaction: &mut Transaction| {
        let Document::Run(mut due) = run("run", "0") else { return Err(StoreError::Lost) };
        due.due = Some(at(0));
        runs::enqueue(transaction, &due)
    };
    ask(store, [Key::run("run")], put).await.expect("it writes");
}

pub(super) async fn a_run_has_one_worker(store: Arc<dyn Store>) {
    enqueue(&*store).await;
    let (gone, _) = lease(&*store, "gone".to_owned(), Duration::ZERO).await.expect("it is due");
    let take = |store: Arc<dyn Store>, owner| async move { lease(&*store, format!("worker {owner}"), LONG).await };
    let mut held: Vec<_> = several(&store, 8, take).await.into_iter().flatten().collect();
    assert_eq!(held.len(), 1, "a run has one worker");
    let (held, taken) = held.remove(0);
    let fenced = save(&*store, &gone, "late", None, AfterUpdate::Keep).await.expect_err("its lease ended");
    assert_eq!(fenced.code(), StoreError::Fenced.code(), "a worker without its lease cannot write");
    save(&*store, &held, "0", None, AfterUpdate::Keep).await.expect("it has the run");
    let release = AfterUpdate::Release { due: Due::At(at(0)), news: taken.news };
    save(&*store, &held, "1", None, release).await.expect("it gives it back");
    let (_, run) = lease(&*store, "next".to_owned(), LONG).await.expect("a released run is due and has no worker");
    assert_eq!(&*run.document, "1", "the next worker continues where the last one ended");
}

/// Posts a message to the run. Returns `false` if the tenant has no such run.
async fn post(store: &dyn Store, id: &str, tenant: Option<&'static str>) -> Result<bool, StoreError> {
    let (key, body) = (Key::post("run", id), Arc::from(format!("{id}\0")));
    let keys = [Key::run("run"), key.clone()];
    let posted = ask(store, keys, move |transaction| posts::post(transaction, &key, tenant, &body, &[])).await?;
    Ok(posted == Ok(()))
}

/// Returns the messages that the run has not received yet, oldest first.
async fn posted(store: &dyn Store) -> Vec<(Key, Arc<str>)> {
    let query = Query { scope: Some("run".into()), ..Query::new(DocumentKind::Post) };
    let listed = listed(store, query).await;
    let body = |document| match document {
        Document::Post(post) => post.body,
        other => panic!("a post reads as a post: {other:?}"),
    };
    listed.into_iter().map(|listed| (listed.key, body(listed.document))).collect()
}

pub(super) async fn posts_are_taken_once(store: Arc<dyn Store>) {
    enqueue(&*store).await;
    assert!(!post(&*store, "a", Some("acme")).await.expect("it answers"), "a run of another tenant is unknown");
    for id in ["b", "a", "b", "c"] {
        assert!(post(&*store, id, None).await.expect("it answers"), "the run is there");
    }
    let waits = posted(&*store).await;
    let bodies: Vec<_> = waits.iter().map(|(_, body)| &**body).collect();
    assert_eq!(bodies, ["b\0", "a\0", "c\0"], "each post is listed once, in order");
    let (held, before) = lease(&*store, "one".to_owned(), LONG).await.expect("it is due");
    assert_eq!((before.posts, before.news), (3, 3), "each post is news once");
    for (key, _) in &waits {
        let taken = Some(key.clone());
        save(&*store, &held, "1", taken, AfterUpdate::Keep).await.expect("it has the run");
    }
    assert_eq!(posted(&*store).await, [], "a taken post is gone");
    assert!(post(&*store, "d", None).await.expect("it answers"));
    let release = AfterUpdate::Release { due: Due::Never, news: before.news };
    save(&*store, &held, "2", None, release).await.expect("it has the run");
    let (_, after) =
        lease(&*store, "two".to_owned(), LONG).await.expect("a post that arrived meanwhile makes the run due");
    assert_eq!((after.posts, &*after.document), (1, "2"));
    let fill = |store: Arc<dyn Store>, task| async move {
        let mut kept = 0;
        for number in 0..64 {
            match post(&*store, &format!("{task}-{number}"), None).await {
                Ok(posted) => kept += usize::from(posted),
                Err(error) => assert_eq!(error.code(), StoreError::Full.code(), "a full run refuses messages"),
            }
        }
        kept
    };
    assert_eq!(several(&store, 8, fill).await.into_iter().sum::<usize>(), 255, "at most 256 messages wait for a run");
}
