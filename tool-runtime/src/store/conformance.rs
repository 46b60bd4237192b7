//! What every store must do, as cases that any implementation can run.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::call::{CallId, Caller, Outcome, RecordedArguments, Suspension, ToolInvocationRecord};
use crate::store::{
    AuditRecord, Chain, Document, FrozenArguments, Key, PendingCall, PendingFilter, Query, RecordFilter, Sealed, Space,
    Store, StoreError, StoredRun, Transaction, Waiting,
};
use crate::tool::{Hash, ToolName};

/// Runs every case, each on a store of its own that `empty` makes.
///
/// ```
/// use std::sync::Arc;
/// use tool_runtime::store::{MemoryStore, Store, conformance};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(
/// conformance::check(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> })
/// # );
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// The store does something else than it must. The message says what.
pub async fn check<F: Future<Output = Arc<dyn Store>>>(empty: impl Fn() -> F) {
    records_are_chained_by_run(&*empty().await).await;
    a_change_is_whole_or_nothing(&*empty().await).await;
    a_change_touches_what_it_named(&*empty().await).await;
    changes_under_one_lock_follow_each_other(empty().await).await;
    a_change_happens_though_its_receipt_is_dropped(&*empty().await).await;
    documents_are_listed_in_order(&*empty().await).await;
    due_documents_are_listed(&*empty().await).await;
    calls_that_wait_are_found(&*empty().await).await;
    what_is_written_reads_the_same(&*empty().await).await;
    who_waits_is_woken(empty().await).await;
}

fn raw(text: &str) -> Arc<RawValue> {
    RawValue::from_string(text.to_owned()).expect("the cases are JSON").into()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("the cases are near")
}

pub(super) fn record(run: &str, call: &str) -> ToolInvocationRecord {
    ToolInvocationRecord {
        tool_call_id: CallId::new(call),
        name: "core__add".to_owned(),
        definition_hash: Some(Hash([7; 32])),
        arguments: RecordedArguments::Masked(raw(r#"{"b":2,"a":18446744073709551615}"#)),
        result: Some(raw("[1.5,\"x\u{1f980}\\u0000\"]")),
        media: Vec::new(),
        outcome: Outcome::Ok,
        cause: None,
        tool_code: None,
        safe_message: None,
        executed: true,
        started_at: at(0),
        ended_at: Some(at(1)),
        run_id: run.into(),
        session_id: None,
        conversation_id: None,
        principal: Some("ada".into()),
        roles: Vec::new(),
        attributes: Vec::new(),
        tenant: None,
        violations: Vec::new(),
        caller: Caller::Direct,
        decision: None,
        validator: None,
        repair: None,
    }
}

pub(super) fn waiting(run: &str, call: &str, expires: i64) -> Waiting {
    let call = PendingCall {
        version: PendingCall::VERSION,
        call_id: CallId::new(call),
        tool: ToolName::parse("core__add").expect("a name"),
        definition_hash: Hash([7; 32]),
        arguments: FrozenArguments::new(r#"{"pin":"1234"}"#),
        argument_digest: Hash([8; 32]),
        shown_arguments: raw(r#"{"pin":"[sensitive]"}"#),
        principal: Some("ada".into()),
        roles: Vec::new(),
        attributes: Vec::new(),
        tools: None,
        tenant: None,
        policy_revision: Hash([9; 32]),
        rule: Some("require_approval_for_effects".to_owned()),
        labels: vec!["untrusted".into()],
        run_id: run.into(),
        session_id: None,
        conversation_id: Some("talk".into()),
        caller: Caller::Direct,
        repair: None,
        started_at: at(0),
        created_at: at(1),
        expires_at: at(expires),
        suspension: Suspension::Approval,
        prepared: None,
        graph: None,
    };
    let open = record(run, call.call_id.as_str());
    Waiting { record: ToolInvocationRecord { ended_at: None, outcome: Outcome::ApprovalRequired, ..open }, call }
}

fn run(id: &str, document: &str) -> Document {
    Document::Run(Box::new(StoredRun::new(id, document)))
}

fn text(document: Option<&Document>) -> Option<&str> {
    match document {
        Some(Document::Run(run)) => Some(&run.document),
        _ => None,
    }
}

async fn read(store: &dyn Store, key: &Key) -> Option<Document> {
    store.read(std::slice::from_ref(key)).await.expect("it reads").pop().flatten()
}

async fn update(
    store: &dyn Store,
    keys: &[Key],
    change: impl FnMut(&mut Transaction) -> Result<(), StoreError> + Send + 'static,
) -> Result<(), StoreError> {
    store.update(keys.to_vec(), Box::new(change)).await
}

fn calls(records: &[Sealed]) -> Vec<&str> {
    records.iter().map(|sealed| sealed.record.call_id().as_str()).collect()
}

async fn records_are_chained_by_run(store: &dyn Store) {
    for (run, call) in [("one", "a"), ("two", "b"), ("one", "c")] {
        store.append(record(run, call).into()).await.expect("it keeps records");
    }
    store.flush().await.expect("it flushes");
    let all = store.records(&RecordFilter::default()).await.expect("it reads records");
    assert_eq!(calls(&all), ["a", "b", "c"], "records are read in the order in which they were appended");
    assert_eq!(Chain::verify(&all), Ok(()), "every run has a chain");
    assert_eq!(all.iter().map(|sealed| sealed.sequence).collect::<Vec<_>>(), [0, 0, 1], "each from 0");
    assert_eq!([all[0].previous, all[1].previous], [Chain::new().head(); 2], "each from zeros");
    store.append(record("two", "d").into()).await.expect("it keeps records");
    let more = store.records(&RecordFilter::default()).await.expect("it reads records");
    assert_eq!(more[2].hash, all[2].hash, "a sealed record is never changed");
    assert_eq!(Chain::verify(&more), Ok(()), "a chain continues");
    assert_eq!(calls(&store.records(&RecordFilter::run("one")).await.expect("it reads")), ["a", "c"], "of one run");
    let call = RecordFilter::call("two", CallId::new("b"));
    assert_eq!(calls(&store.records(&call).await.expect("it reads")), ["b"], "of one call");
    let page = RecordFilter { skip: 1, limit: Some(2), ..RecordFilter::default() };
    assert_eq!(calls(&store.records(&page).await.expect("it reads")), ["b", "c"], "a page");
}

async fn a_change_is_whole_or_nothing(store: &dyn Store) {
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
    assert_eq!(error.code(), StoreError::Duplicate.code(), "the receipt has the error of the change");
    let documents = store.read(&keys).await.expect("it reads");
    let texts: Vec<_> = documents.iter().map(|document| text(document.as_ref())).collect();
    assert_eq!(texts, [Some("1"), Some("2")], "a refused change writes nothing");
    let records = store.records(&RecordFilter::default()).await.expect("it reads");
    assert_eq!(calls(&records), ["a"], "a refused change appends nothing");
    let removed = keys[1].clone();
    update(store, &keys[1..], move |transaction| transaction.remove(&removed)).await.expect("it removes");
    assert!(read(store, &keys[1]).await.is_none(), "what was removed is gone");
    assert!(read(store, &Key::run("three")).await.is_none(), "what never was is not there");
}

async fn a_change_touches_what_it_named(store: &dyn Store) {
    let named = [Key::run("one")];
    let other = |transaction: &mut Transaction| transaction.set(&Key::run("two"), run("two", "2"));
    let error = update(store, &named, other).await.expect_err("it was not named");
    assert_eq!(error.code(), StoreError::NotLocked.code(), "a document that was not named");
    let error = update(store, &named, |transaction| transaction.append(record("two", "a"))).await;
    assert_eq!(error.expect_err("it was not named").code(), StoreError::NotLocked.code(), "a run that was not named");
}

async fn changes_under_one_lock_follow_each_other(store: Arc<dyn Store>) {
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

async fn a_change_happens_though_its_receipt_is_dropped(store: &dyn Store) {
    let key = Key::run("one");
    let named = key.clone();
    drop(store.update(vec![key.clone()], Box::new(move |transaction| transaction.set(&named, run("one", "kept")))));
    drop(store.append(record("one", "a").into()));
    store.flush().await.expect("it flushes");
    assert_eq!(text(read(store, &key).await.as_ref()), Some("kept"), "the change happened before the flush returned");
    let records = store.records(&RecordFilter::run("one")).await.expect("it reads");
    assert_eq!(calls(&records), ["a"], "the record was kept before the flush returned");
}

async fn documents_are_listed_in_order(store: &dyn Store) {
    for id in ["b", "a", "c"] {
        let key = Key::run(id);
        let named = key.clone();
        update(store, &[key], move |transaction| transaction.set(&named, run(named.scope(), "1")))
            .await
            .expect("writes");
    }
    // A second write does not move a document.
    let key = Key::run("b");
    update(store, &[Key::run("b")], move |transaction| transaction.set(&key, run("b", "2"))).await.expect("it writes");
    let all = store.list(&Query::new(Space::Run)).await.expect("it lists");
    let scopes: Vec<_> = all.iter().map(|listed| &**listed.key.scope()).collect();
    assert_eq!(scopes, ["b", "a", "c"], "in the order in which they were first written");
    let page = Query { limit: 1, after: all[0].position, ..Query::new(Space::Run) };
    let page = store.list(&page).await.expect("it lists");
    assert_eq!(page.iter().map(|listed| &listed.key).collect::<Vec<_>>(), [&Key::run("a")], "one page");
    let scope = Query { scope: Some("c".into()), ..Query::new(Space::Run) };
    assert_eq!(store.list(&scope).await.expect("it lists").len(), 1, "of one scope");
    assert!(store.list(&Query::new(Space::Call)).await.expect("it lists").is_empty(), "of another space");
}

async fn due_documents_are_listed(store: &dyn Store) {
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
        let query = Query { due: Some(now), ..Query::new(Space::Run) };
        assert_eq!(store.list(&query).await.expect("it lists").len(), expected, "due at {now}");
    }
}

async fn calls_that_wait_are_found(store: &dyn Store) {
    for (run, call, expires) in [("one", "b", 10), ("one", "a", 20), ("two", "c", 30)] {
        let (key, waiting) = (Key::waiting(run, &CallId::new(call)), waiting(run, call, expires));
        let named = key.clone();
        let write =
            move |transaction: &mut Transaction| transaction.set(&named, Document::Waiting(Box::new(waiting.clone())));
        update(store, &[key], write).await.expect("it writes");
    }
    let cases = [
        (PendingFilter::default(), vec!["b", "a", "c"]),
        (PendingFilter { run_id: Some("one".into()), ..PendingFilter::default() }, vec!["b", "a"]),
        (PendingFilter { call_id: Some(CallId::new("c")), ..PendingFilter::default() }, vec!["c"]),
        (PendingFilter { expired_at: Some(at(20)), ..PendingFilter::default() }, vec!["b", "a"]),
        (PendingFilter { suspension: Some(Suspension::Client), ..PendingFilter::default() }, vec![]),
        (PendingFilter { conversation_id: Some("other".into()), ..PendingFilter::default() }, vec![]),
    ];
    for (filter, expected) in cases {
        let found = store.pending_calls(&filter).await.expect("it lists");
        let ids: Vec<_> = found.iter().map(|call| call.call_id.as_str()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    }
    let found = store.pending("one", &CallId::new("a")).await.expect("it reads").expect("it waits");
    assert_eq!(found.arguments.as_str(), r#"{"pin":"1234"}"#, "frozen arguments are kept as they are");
    assert!(store.pending("two", &CallId::new("a")).await.expect("it reads").is_none(), "of another run");
    let open = store.open_records(&RecordFilter::run("one")).await.expect("it lists");
    assert_eq!(open.iter().map(|record| record.tool_call_id.as_str()).collect::<Vec<_>>(), ["b", "a"], "open records");
}

async fn what_is_written_reads_the_same(store: &dyn Store) {
    let id = "a'b\"c\\d\u{0}e%f_\u{1f980}";
    let document = "\u{0}\u{feff}'; --\u{1f980}";
    let key = Key::waiting(id, &CallId::new(id));
    let pair = [Key::run(id), key];
    let named = pair.clone();
    let write = move |transaction: &mut Transaction| {
        transaction.set(&named[0], run(id, document))?;
        transaction.set(&named[1], Document::Waiting(Box::new(waiting(id, id, 1))))?;
        transaction.append(record(id, id))
    };
    update(store, &pair, write).await.expect("it writes");
    assert_eq!(text(read(store, &pair[0]).await.as_ref()), Some(document), "any text");
    let listed = store.list(&Query { scope: Some(id.into()), ..Query::new(Space::Waiting) }).await.expect("it lists");
    assert_eq!(listed.first().map(|listed| &listed.key), Some(&pair[1]), "any id");
    let records = store.records(&RecordFilter::call(id, CallId::new(id))).await.expect("it reads");
    assert_eq!(Chain::verify(&records), Ok(()), "a record reads as it was sealed");
    let json = |record: &ToolInvocationRecord| serde_json::to_string(record).expect("JSON");
    let first = records.first().and_then(|sealed| AuditRecord::as_call(&sealed.record)).expect("a call's record");
    assert_eq!(json(first), json(&record(id, id)), "digit for digit");
}

async fn who_waits_is_woken(store: Arc<dyn Store>) {
    let (key, due) = (Key::run("due"), Query { due: Some(at(1)), ..Query::new(Space::Run) });
    let waiter = Arc::clone(&store);
    let woken = tokio::spawn(async move {
        while waiter.list(&due).await.expect("it lists").is_empty() {
            waiter.changed().await;
        }
    });
    let named = key.clone();
    let write = move |transaction: &mut Transaction| {
        let run = StoredRun { due: Some(at(0)), ..StoredRun::new("due", "1") };
        transaction.set(&named, Document::Run(Box::new(run)))
    };
    update(&*store, &[key], write).await.expect("it writes");
    tokio::time::timeout(Duration::from_secs(10), woken).await.expect("it resolves in time").expect("it lists");
}
