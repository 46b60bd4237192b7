//! Migrations from each earlier version keep every kind of document.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;
use serde_json::Value;
use tool_runtime::agent::{Agent, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, Worker};
use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::{ApprovalDecision, Grant};
use tool_runtime::store::{
    DocumentKind, GrantScope, Query, RecordFilter, Store, StoreError, StoredDocument, Verification,
};
use tool_runtime::testing::ScriptedModel;
use tool_runtime::wire::Decoded;
use tool_runtime::{
    Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// Writes a line.
#[tool(name = "migrated__write", effect = state_change, redact = ["$"], summary = "Writes {line}")]
fn write(
    /// The line.
    line: String,
) -> Result<String, ToolError> {
    Ok(line)
}

/// Begins to write, and does not end.
#[tool(name = "migrated__cut", effect = state_change, redact = ["$"], once = "cut:{line}")]
async fn cut(
    ctx: &ToolContext,
    /// The line.
    line: String,
) -> Result<String, ToolError> {
    ctx.cancellation().cancelled().await;
    drop(line);
    std::future::pending().await
}

const POLICY: &str = "\
    allowed_tools = ['migrated__write', 'migrated__cut']\n\
    require_approval_for_tools = ['migrated__write']\n\
    budgets.tenant = { window = '30d', calls = 1000 }\n\
    [notices]\n\
    link = 'https://app.example/{run}/{call}'\n";

/// A model that never answers.
struct Never;

#[async_trait]
impl ModelClient for Never {
    fn name(&self) -> &'static str {
        "never"
    }

    async fn complete(&self, _: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        std::future::pending().await
    }
}

/// Which kinds of documents each version has in addition to those of the version before.
const KINDS: [(i64, &[DocumentKind]); 4] = [
    (
        1,
        &[
            DocumentKind::Call,
            DocumentKind::Waiting,
            DocumentKind::Run,
            DocumentKind::Grant,
            DocumentKind::Post,
            DocumentKind::Account,
            DocumentKind::Anchor,
        ],
    ),
    (2, &[DocumentKind::Decided]),
    (3, &[DocumentKind::DigestKey, DocumentKind::Effect]),
    (4, &[DocumentKind::Notice, DocumentKind::Slots]),
];

fn kinds(version: i64) -> impl Iterator<Item = DocumentKind> {
    KINDS.into_iter().filter(move |(since, _)| *since <= version).flat_map(|(_, kinds)| kinds.iter().copied())
}

fn runner(store: &Arc<SqlStore>) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<write>().tool::<cut>().build().unwrap();
    let policy = ToolPolicy::from_toml(POLICY).unwrap_or_else(|error| panic!("{error}"));
    ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store)).build().unwrap()
}

fn of(id: &str) -> RunOptions {
    RunOptions::new().run_id(id).principal("ada").tenant("acme")
}

fn call(id: &str, tool: &str, line: &str) -> ToolCall {
    ToolCall::text(id, tool, format!(r#"{{"line":"{line}"}}"#))
}

fn grace() -> Decider {
    Decider::new("grace").tenant("acme")
}

async fn approve(run: &Run, id: &str) -> Outcome {
    let waiting = run.pending(&CallId::new(id)).await.unwrap().expect("it waits");
    run.resume(&waiting.question(), ApprovalDecision::Approve, &grace()).await.expect("it waits").outcome()
}

async fn listed(store: &dyn Store, kind: DocumentKind) -> Vec<StoredDocument> {
    store.list(&Query::new(kind)).await.unwrap()
}

/// Fills a store with every kind of document.
async fn fill(store: &Arc<SqlStore>) {
    let runner = runner(store);
    let run = runner.run(of("decided"));
    run.exec(call("c1", "migrated__write", "one")).await;
    assert_eq!(approve(&run, "c1").await, Outcome::Ok);
    let run = runner.run(of("waits"));
    let asked = run.exec(call("c1", "migrated__write", "two")).await;
    let grant = Grant::allow(GrantScope::Principal).uses(9);
    run.remember(asked.question().expect("it waits"), grant, &grace()).await.expect("a grant");
    let run = runner.run(of("unknown"));
    let cancelled = run.clone();
    let cut = tokio::spawn(async move { run.exec(call("c1", "migrated__cut", "three")).await.outcome() });
    while listed(&**store, DocumentKind::Effect).await.is_empty() {
        tokio::task::yield_now().await;
    }
    cancelled.cancel();
    assert_eq!(cut.await.unwrap(), Outcome::OutcomeUnknown);
    // A worker that has a run.
    let queue = RunQueue::new(&runner);
    let enqueue = async |id: &str| {
        let mut conversation = Agent::new(ScriptedModel::new([])).converse(runner.run(of(id)));
        conversation.accept(Input::from("Go on, and write what this sentence says.")).await.expect("a message");
        queue.enqueue(&conversation.save().await.unwrap()).await.expect("it is new");
    };
    enqueue("held").await;
    let worker = Worker::new(Agent::new(Never), runner.clone()).runs_per_tenant(1);
    let works = tokio::spawn(async move { worker.run(std::future::pending()).await });
    while listed(&**store, DocumentKind::Slots).await.is_empty() {
        tokio::task::yield_now().await;
    }
    works.abort();
    enqueue("due").await;
    queue.post("due", Some("acme"), &Input::from("And this one.")).await.expect("it is there");
    (&**store as &dyn Store).anchor(|_| ()).await.unwrap();
}

/// The JSON of a document, as a version writes it.
fn as_of(version: i64, json: &str) -> Value {
    let mut json: Value = serde_json::from_str(json).unwrap();
    if let Some(run) = json.get_mut("run").and_then(Value::as_object_mut) {
        // Version 5 writes when a run was changed last, and version 4 which library it needs.
        run.remove("changed");
        if version < 4 {
            run.remove("version");
        }
    }
    json
}

const TABLES: [&str; 4] = [
    "",
    include_str!("../../../tool-runtime/sql/src/store/tests/older/1.sqlite.sql"),
    include_str!("../../../tool-runtime/sql/src/store/tests/older/2.sqlite.sql"),
    include_str!("../../../tool-runtime/sql/src/store/tests/older/3.sqlite.sql"),
];

/// Writes the file as an earlier version has it. `whole` are the documents, each in one text.
fn downgrade(from: &Path, to: &Path, version: i64, whole: &BTreeMap<i64, String>) {
    let new = rusqlite::Connection::open(from).unwrap();
    new.execute("VACUUM INTO ?1", [to.with_extension("new").to_str().unwrap()]).unwrap();
    let old = rusqlite::Connection::open(to).unwrap();
    let at = to.with_extension("new");
    old.execute("ATTACH ?1 AS new", [at.to_str().unwrap()]).unwrap();
    let prefix = if version < 3 { "" } else { "tool_runtime_" };
    match version {
        1 => old.execute_batch(TABLES[1]).unwrap(),
        2 => old.execute_batch(&format!("{} {}", TABLES[1], TABLES[2])).unwrap(),
        3 => old.execute_batch(TABLES[3]).unwrap(),
        // Versions 4 and 5 have the tables of this one.
        _ => {
            let tables: Vec<String> = old
                .prepare("SELECT sql FROM new.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
                .unwrap()
                .query_map([], |row| row.get(0))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            old.execute_batch(&tables.join(";")).unwrap();
        }
    }
    let codes: Vec<_> = kinds(version).map(DocumentKind::code).collect();
    let mut rows = old
        .prepare("SELECT number, space, scope, id, name, due, body, parts, lane, leased_until FROM new.tool_runtime_documents")
        .unwrap();
    let mut rows = rows.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (number, space): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        if !codes.contains(&&*space) {
            continue;
        }
        let body: String = if version < 3 { whole[&number].clone() } else { row.get(6).unwrap() };
        let body = as_of(version, &body).to_string();
        let text = |at: usize| row.get::<_, Option<String>>(at).unwrap();
        let time = |at: usize| row.get::<_, Option<i64>>(at).unwrap();
        let into = format!("INSERT INTO main.{prefix}documents");
        old.execute(
            &format!("{into} (number, space, scope, id, name, due, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
            params![number, space, text(2), text(3), text(4), time(5), body],
        )
        .unwrap();
        if version >= 3 {
            let set = "UPDATE main.tool_runtime_documents SET parts = ?2 WHERE number = ?1";
            old.execute(set, params![number, text(7)]).unwrap();
        }
        if version >= 4 {
            let set = "UPDATE main.tool_runtime_documents SET lane = ?2, leased_until = ?3 WHERE number = ?1";
            old.execute(set, params![number, text(8), time(9)]).unwrap();
        }
    }
    if version >= 3 {
        old.execute_batch("INSERT INTO main.tool_runtime_parts SELECT * FROM new.tool_runtime_parts").unwrap();
    }
    let columns =
        "number, run_id, sequence, call_id, kind, tool, outcome, principal, tenant, decider, at, previous, hash, body";
    old.execute_batch(&format!(
        "INSERT INTO main.{prefix}records ({columns}) SELECT {columns} FROM new.tool_runtime_records; \
         CREATE TABLE IF NOT EXISTS main.tool_runtime_schema (version BIGINT NOT NULL); \
         DELETE FROM main.tool_runtime_schema; INSERT INTO main.tool_runtime_schema VALUES ({version});"
    ))
    .unwrap();
}

/// The documents in their order: position, key, time, and the whole document.
fn told(documents: &[StoredDocument], version: i64) -> Vec<(u64, String, Option<jiff::Timestamp>, Value)> {
    let told = |document: &StoredDocument| {
        let json = as_of(version, &document.to_json().unwrap());
        (document.position, format!("{:?}", document.key), document.due(), json)
    };
    documents.iter().map(told).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_kind_of_document_is_lost_from_any_version() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.db");
    let store = Arc::new(SqlStore::sqlite(&new, SqlOptions::new()).await.unwrap());
    fill(&store).await;
    let mut before = BTreeMap::new();
    for kind in kinds(5) {
        let documents = listed(&*store, kind).await;
        assert!(!documents.is_empty(), "{kind:?}");
        before.insert(kind.code(), documents);
    }
    let whole = before.values().flatten();
    let whole =
        whole.map(|document| (i64::try_from(document.position).unwrap(), document.to_json().unwrap())).collect();
    let records = store.records(&RecordFilter::default()).await.unwrap();
    let texts = |records: &[tool_runtime::store::SealedRecord]| format!("{records:?}");
    for version in 1..=5 {
        let path = folder.path().join(format!("{version}.db"));
        downgrade(&new, &path, version, &whole);
        let refused = SqlStore::sqlite(&path, SqlOptions::new().migrate(false)).await.unwrap_err();
        assert!(matches!(refused, StoreError::Older { found, .. } if found == version), "{version}: {refused}");
        let migrated = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.unwrap());
        for kind in kinds(version) {
            let after = told(&listed(&*migrated, kind).await, version);
            assert_eq!(after, told(&before[kind.code()], version), "{version}: {kind:?}");
        }
        let kept = migrated.records(&RecordFilter::default()).await.unwrap();
        assert_eq!(texts(&kept), texts(&records), "{version}");
        let verified = Verification::of_store(&*migrated, &[], |_| ()).await.unwrap();
        assert_eq!(verified.findings, vec![], "{version}");
        // The migrated documents still work: the grant, the waiting call, and the unknown outcome.
        let runner = runner(&migrated);
        let granted = runner.run(of("later")).exec(call("c1", "migrated__write", "two")).await;
        assert_eq!(granted.outcome(), Outcome::Ok, "{version}: {}", granted.to_model());
        assert_eq!(approve(&runner.run(of("waits")), "c1").await, Outcome::Ok, "{version}");
        let unsettled = (&*migrated as &dyn Store).unsettled_calls(&RecordFilter::default()).await.unwrap();
        assert_eq!(unsettled.len(), usize::from(version >= 3), "{version}");
    }
}
