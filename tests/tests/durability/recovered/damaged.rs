//! Documents that cannot be read, and pages that are short: searches continue behind both.

use rusqlite::Connection;
use tests::world::{HookAction, HookedStore};
use tool_runtime::ToolCall;
use tool_runtime::call::{CallId, Decider};
use tool_runtime::store::{DocumentKind, Finding, Key, Query, StoreError, StoredDocument, Transaction};
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// The runs of the copies.
const RUNS: [&str; 3] = ["run-1", "run-2", "run-3"];

/// A SQLite database, with a connection to damage it.
struct Database {
    _folder: tempfile::TempDir,
    file: Connection,
    store: Arc<dyn Store>,
}

impl Database {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let store = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
        let file = Connection::open(&path).expect("a database");
        Self { _folder: folder, file, store }
    }

    /// Changes the second document of a kind.
    fn change(&self, kind: DocumentKind, set: &str) {
        let sql = format!(
            "UPDATE tool_runtime_documents SET {set} WHERE number = (SELECT number FROM tool_runtime_documents \
             WHERE space = '{}' ORDER BY number LIMIT 1 OFFSET 1)",
            kind.code()
        );
        assert_eq!(self.file.execute(&sql, []).expect("it is written"), 1);
    }

    fn damage(&self, kind: DocumentKind) {
        self.change(kind, "body = '{'");
    }
}

async fn put(store: &dyn Store, document: StoredDocument) {
    let key = document.key.clone();
    let put = move |transaction: &mut Transaction| transaction.put(document.clone());
    store.update(vec![key], Box::new(put)).await.expect("it writes");
}

/// Copies the documents of a kind, and the key of their digests.
async fn copy(rig: &Rig, kind: DocumentKind, to: &dyn Store) {
    for kind in [DocumentKind::DigestKey, kind] {
        for document in rig.store.list(&Query::new(kind)).await.expect("it lists") {
            put(to, document).await;
        }
    }
}

/// The runs whose call has a record, with its outcome.
async fn ended(store: &dyn Store) -> Vec<(String, Outcome)> {
    let records = store.calls(&RecordFilter::default()).await.expect("records");
    records.into_iter().map(|record| (record.run_id.to_string(), record.outcome)).collect()
}

fn but_the_second(outcome: Outcome) -> Vec<(String, Outcome)> {
    [RUNS[0], RUNS[2]].map(|run| (run.to_owned(), outcome)).to_vec()
}

fn code<T>(result: Result<T, StoreError>) -> &'static str {
    result.map(drop).map_or_else(|error| error.code(), |()| "ok")
}

/// Makes a call of the rig's tool in each run.
async fn calls(rig: &Rig) {
    let runner = rig.runner();
    let calls = RUNS.map(|id| {
        let (run, arguments) = (runner.run(ada().run_id(id)), format!(r#"{{"what":"{id}"}}"#));
        let call = ToolCall::text("c", rig.name(), arguments);
        async move { drop(run.exec(call).await) }
    });
    let [one, two, three] = calls;
    tokio::join!(one, two, three);
}

/// A process died in its three calls.
fn died(tool: &'static str) -> Rig {
    let rig = Rig::new(tool, Dies::After);
    *of(&rig.there.more) = 2;
    let process = Rig {
        clock: Arc::clone(&rig.clock),
        store: Arc::clone(&rig.store),
        there: Arc::clone(&rig.there),
        is_later: AtomicBool::new(false),
        ..rig
    };
    rig.dies(async move { calls(&process).await });
    rig
}

/// The outcomes of three calls are unknown.
fn unknown() -> Rig {
    let rig = died("plain");
    rig.later(async { rig.dyn_store().sweep().await.expect("swept") });
    rig
}

/// Three waiting calls that have expired.
async fn suspended() -> Rig {
    let rig = Rig { asks: true, ..Rig::new("plain", Dies::After) };
    calls(&rig).await;
    rig.clock.advance(Duration::from_hours(48));
    rig
}

#[test]
fn an_abandoned_call_that_cannot_be_read_stops_no_other() {
    for (tool, outcome) in [("plain", Outcome::OutcomeUnknown), ("keyed", Outcome::Ok)] {
        let rig = died(tool);
        runtime().block_on(async {
            let database = Database::new().await;
            copy(&rig, DocumentKind::Call, &*database.store).await;
            database.damage(DocumentKind::Call);
            let open = database.store.unfinished_calls(&RecordFilter::default()).await.expect("it lists");
            let told: Vec<_> = open.iter().map(|read| read.as_ref().map(|call| &*call.run_id)).collect();
            assert!(matches!(told[..], [Ok("run-1"), Ok("run-3"), Err(_)]), "{told:?}");
            let one = RecordFilter { limit: Some(1), ..RecordFilter::default() };
            let open = database.store.unfinished_calls(&one).await.expect("it lists");
            assert!(matches!(open[..], [Ok(_), Err(_)]), "a limit hides no damage: {open:?}");
            let swept = rig.runner_over(Arc::clone(&database.store)).sweep().await;
            assert_eq!(code(swept), "store_corrupt", "{tool}");
            assert_eq!(ended(&*database.store).await, but_the_second(outcome), "{tool}");
        });
    }
}

#[test]
fn a_run_that_cannot_be_read_keeps_its_own_call_open() {
    let rig = died("plain");
    runtime().block_on(async {
        let database = Database::new().await;
        copy(&rig, DocumentKind::Call, &*database.store).await;
        for run in RUNS {
            put(&*database.store, StoredDocument::example(run, "{}", None)).await;
        }
        database.damage(DocumentKind::Run);
        assert_eq!(code(database.store.sweep().await), "store_corrupt");
        assert_eq!(ended(&*database.store).await, but_the_second(Outcome::OutcomeUnknown));
    });
}

/// The call of a later version waits, too: both versions work on the store during an upgrade.
#[tokio::test]
async fn a_waiting_call_that_cannot_be_read_stops_no_other() {
    for set in ["body = '{'", "body = json_set(body, '$.waiting.call.version', 2)"] {
        let (rig, database) = (suspended().await, Database::new().await);
        copy(&rig, DocumentKind::Waiting, &*database.store).await;
        database.change(DocumentKind::Waiting, set);
        let swept = rig.runner_over(Arc::clone(&database.store)).sweep().await;
        assert_eq!(code(swept), "store_corrupt", "{set}");
        assert_eq!(ended(&*database.store).await, but_the_second(Outcome::ApprovalExpired), "{set}");
    }
}

#[test]
fn an_effect_that_cannot_be_read_stops_no_other() {
    let rig = unknown();
    runtime().block_on(async {
        let database = Database::new().await;
        copy(&rig, DocumentKind::Effect, &*database.store).await;
        // An earlier version wrote another due time.
        database.file.execute("UPDATE tool_runtime_documents SET due = 1767225600000000", []).expect("it is written");
        database.damage(DocumentKind::Effect);
        let listed = database.store.unsettled_calls(&RecordFilter::default()).await.expect("it lists");
        let told: Vec<_> = listed.iter().map(|read| read.as_ref().map(|record| &*record.run_id)).collect();
        assert!(matches!(told[..], [Ok("run-1"), Ok("run-3"), Err(_)]), "{told:?}");
        let (runner, grace) = (rig.runner_over(Arc::clone(&database.store)), Decider::new("grace").tenant("acme"));
        let settle = async |run: &str| {
            let (queue, call) = (RunQueue::new(&runner), CallId::new("c"));
            let settled = queue.settle(run, Some("acme"), Some("ada"), &call, Reconciled::Prevented, &grace).await;
            settled.map(|result| result.outcome()).map_err(|error| error.code())
        };
        assert_eq!(settle("run-3").await, Ok(Outcome::Cancelled));
        assert_eq!(settle("run-2").await, Err("store_corrupt"), "its call may be the one that cannot be read");
    });
}

/// Each kind is swept behind a document that cannot be read, and so are the kinds after it.
#[tokio::test]
async fn a_document_that_cannot_be_read_keeps_no_other_in_the_store() {
    let database = Database::new().await;
    let over = r#"{"decided":{"until":"2020-01-01T00:00:00Z"}}"#;
    for kind in [DocumentKind::Grant, DocumentKind::Decided] {
        for run in RUNS {
            put(&*database.store, StoredDocument::from_json(Key::from_parts(kind, run, "id"), over).expect("one"))
                .await;
        }
        database.damage(kind);
    }
    assert_eq!(code(database.store.sweep().await), "store_corrupt");
    let sql = "SELECT group_concat(space || scope) FROM (SELECT * FROM tool_runtime_documents ORDER BY number)";
    let left: String = database.file.query_row(sql, [], |row| row.get(0)).expect("a row");
    assert_eq!(left, "grantrun-2,decidedrun-2");
}

/// A store may return fewer documents than the limit.
#[test]
fn short_pages_hide_no_document() {
    let [begun, lost] = [died("keyed"), unknown()];
    runtime().block_on(async {
        let (waiting, store) = (suspended().await, Arc::new(MemoryStore::new()));
        for (rig, kind) in
            [(&begun, DocumentKind::Call), (&waiting, DocumentKind::Waiting), (&lost, DocumentKind::Effect)]
        {
            copy(rig, kind, &*store).await;
        }
        let short: Arc<dyn Store> = Arc::new(HookedStore::new(store, |_| HookAction::Pass).short_pages(1));
        let unsettled = short.unsettled_calls(&RecordFilter::default()).await.expect("it lists");
        assert_eq!(unsettled.iter().flatten().count(), 3);
        begun.runner_over(Arc::clone(&short)).sweep().await.expect("swept");
        waiting.runner_over(Arc::clone(&short)).sweep().await.expect("swept");
        let mut outcomes: Vec<_> = ended(&*short).await.into_iter().map(|(_, outcome)| outcome.code()).collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, [["approval_expired"; 3], ["ok"; 3]].concat());
    });
}

/// A key that is kept for a year has its record, and is not read to find the calls of unknown outcome.
#[test]
fn a_listing_of_unknown_outcomes_reads_no_key_that_is_kept() {
    let rig = unknown();
    runtime().block_on(async {
        let database = Database::new().await;
        copy(&rig, DocumentKind::Effect, &*database.store).await;
        // The second one becomes a key whose effect happened.
        let held = "body = json_object('effect', json_object('is_once', json('true'), 'keep', 9, 'held', json_object(\
                    'run_id', 'run-2', 'call_id', 'c', 'key', json_extract(body, '$.effect.unknown[0].call.key'), \
                    'record', json(json_extract(body, '$.effect.unknown[0].record')), 'until', '9000-01-01T00:00:00Z')))";
        database.change(DocumentKind::Effect, held);
        let key = database.store.list(&Query::new(DocumentKind::Effect)).await.expect("it lists").remove(1).key;
        // Written again, it has its own due time.
        let again = database.store.read(std::slice::from_ref(&key)).await.expect("it reads").remove(0).expect("one");
        put(&*database.store, again).await;
        let due = Query { due: Some(database.store.now().await.expect("a time")), ..Query::new(DocumentKind::Effect) };
        assert_eq!(database.store.list(&due).await.expect("it lists").len(), 2);
        let unsettled = database.store.unsettled_calls(&RecordFilter::default()).await.expect("it lists");
        assert_eq!(unsettled.iter().flatten().count(), 2);
        let early = Query { due: Some(jiff::Timestamp::UNIX_EPOCH), ..due };
        assert_eq!(database.store.list(&early).await.expect("it lists").len(), 2, "before every time to keep");
    });
}

/// A read between two records fails: the place stays.
#[tokio::test]
async fn a_failed_read_before_a_damaged_record_skips_none() {
    let (rig, database) = (Rig::new("again", Dies::After), Database::new().await);
    of(&rig.there.fate).take();
    let run = rig.runner_over(Arc::clone(&database.store)).run(ada());
    for id in ["a", "b", "c"] {
        run.exec(ToolCall::text(id, rig.name(), ARGUMENTS)).await;
    }
    database.file.execute("UPDATE tool_runtime_records SET body = '{' WHERE sequence = 1", []).expect("it is written");
    let reads = Mutex::new(0);
    let store = HookedStore::new(Arc::clone(&database.store), move |method| {
        *of(&reads) += u32::from(method == "records");
        let is_second = method == "records" && *of(&reads) == 2;
        if is_second { HookAction::Fail(StoreError::Unavailable("lost".into())) } else { HookAction::Pass }
    });
    let mut filter = RecordFilter { limit: Some(10), ..RecordFilter::default() };
    assert_eq!(code(filter.next_page(&store).await), "store_unavailable");
    let page = filter.next_page(&store).await.expect("it reads").expect("a page");
    let read: Vec<_> = page.iter().map(|read| read.as_ref().map(|sealed| sealed.sequence)).collect();
    assert!(matches!(read[..], [Ok(0), Err(_)]), "{read:?}");
    assert_eq!(page[1].as_ref().err().map(Finding::code), Some("record_unreadable"));
}
