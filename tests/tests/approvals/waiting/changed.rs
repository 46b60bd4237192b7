//! Changes between a call's suspension and the decision on it: each has its own code of refusal, whether the call waits
//! in a store or in a sealed token, and the call is not lost.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use tests::Shown as _;

use serde_json::{Value, json};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::SealingKeys;
use tool_runtime::testing::ManualClock;
use tool_runtime::{ToolContext, ToolEffect};
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

struct Counts(Arc<AtomicU32>);

#[async_trait::async_trait]
impl DynamicHandler for Counts {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Ok(json!({"done": true}))
    }
}

/// The parts of a service, and the options of its run.
#[derive(Clone)]
struct Service {
    describes: &'static str,
    rules: &'static str,
    options: RunOptions,
    keys: SealingKeys,
    /// How far its clock is from the one of the suspension, in seconds.
    seconds: i64,
}

const RULES: &str = r#"
    require_approval_for_tools = ["changed__act"]

    [roles.editor]
    allowed_tools = ["changed__act"]

    [labels.web]
    from_run = true
    deny_effects = ["state_change"]

    [attributes.region.north]
    denied_tools = ["changed__act"]
"#;

fn service() -> Service {
    let keys = SealingKeys::new("2026-11", [7; 32]);
    Service { describes: "Acts.", rules: "", options: ada().tools(["changed__act"]), keys, seconds: 0 }
}

impl Service {
    fn runner(&self, store: Arc<dyn Store>, acted: &Arc<AtomicU32>) -> ToolRunner {
        let arguments = json!({
            "type": "object",
            "properties": {"to": {"type": "integer"}},
            "required": ["to"],
            "additionalProperties": false,
        });
        let output = json!({"type": "object", "properties": {"done": {"type": "boolean"}}});
        let handler = Arc::new(Counts(Arc::clone(acted)));
        let act = DynamicTool::new("changed__act", self.describes, arguments, ToolEffect::StateChange, handler);
        let act = act.output_schema(output).redact(["done"]);
        let start: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().expect("a time");
        let policy = ToolPolicy::from_toml(&format!("{RULES}\n{}", self.rules)).expect("a policy");
        ToolRunner::builder(ToolCatalog::builder().dynamic(act).build().expect("a catalog"), policy)
            .approvals(true)
            .store(store)
            .clock(Arc::new(ManualClock::at(start + jiff::SignedDuration::from_secs(self.seconds))))
            .build()
            .expect("a runner")
    }
}

async fn suspend(runner: &ToolRunner) -> Run {
    let run = runner.run(service().options);
    let waits = run.exec(ToolCall::text("c", "changed__act", r#"{"to":3}"#)).await;
    assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
    run
}

/// The code with which a decision ends.
async fn decided(run: &Run) -> String {
    match run.resume_shown("c", ApprovalDecision::Approve, &grace()).await {
        Ok(result) if result.outcome() == Outcome::ApprovalMismatch => {
            let mismatch = result.error().and_then(|error| error.mismatch);
            mismatch.map_or("approval_mismatch", |mismatch| mismatch.code()).to_owned()
        }
        Ok(result) => result.outcome().code().to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

/// Edits the stored document of the call that waits, as somebody with the file could.
fn edit(path: &Path, edit: fn(&mut Value)) {
    let file = rusqlite::Connection::open(path).expect("a database");
    let body: String = file
        .query_row("SELECT body FROM tool_runtime_documents WHERE space = 'waiting'", [], |row| row.get(0))
        .expect("a call that waits");
    let mut document: Value = serde_json::from_str(&body).expect("a document");
    edit(&mut document["waiting"]["call"]);
    let changed =
        file.execute("UPDATE tool_runtime_documents SET body = ?1 WHERE space = 'waiting'", [document.to_string()]);
    assert_eq!(changed.expect("it is written"), 1);
}

type Change = fn(&mut Service);

/// The changes, and the codes with which a stored call and a token are refused. A token contains its run, and the run
/// does not take up additional rights. In that case the call runs.
fn changes() -> Vec<(&'static str, Change, &'static str, &'static str)> {
    vec![
        ("nothing", |_| {}, "ok", "ok"),
        ("definition", |service| service.describes = "Acts otherwise.", "definition", "definition"),
        ("policy", |service| service.rules = "[budgets.run]\ncalls = 9", "policy", "policy"),
        // For others, the call does not exist. The holder of a token has seen it.
        (
            "principal",
            |service| {
                service.options = RunOptions::new().run_id("run-1").principal("eve").tenant("acme").role("editor");
            },
            "not_pending",
            "other_principal",
        ),
        (
            "tenant",
            |service| {
                service.options = RunOptions::new().run_id("run-1").principal("ada").tenant("other").role("editor");
            },
            "not_pending",
            "other_tenant",
        ),
        ("one more role", |service| service.options = service.options.clone().role("admin"), "roles", "ok"),
        (
            "one role less",
            |service| {
                let options = RunOptions::new().run_id("run-1").principal("ada").tenant("acme");
                service.options = options.tools(["changed__act"]);
            },
            "roles",
            "roles",
        ),
        ("tools", |service| service.options = ada(), "tools", "ok"),
        (
            "attributes",
            |service| service.options = service.options.clone().attribute("region", "south"),
            "attributes",
            "attributes",
        ),
        (
            "caller",
            |service| service.options = service.options.clone().caller(graph("report")),
            "caller",
            "other_caller",
        ),
        ("labels", |service| service.options = service.options.clone().label("web"), "labels", "labels"),
        ("clock", |service| service.seconds = -3600, "clock", "clock"),
        ("expiry", |service| service.seconds = 25 * 3600, "approval_expired", "token_expired"),
        ("a rotated-out key", |service| service.keys = SealingKeys::new("2026-12", [8; 32]), "ok", "token_key_unknown"),
        ("another key", |service| service.keys = SealingKeys::new("2026-11", [8; 32]), "ok", "token_forged"),
    ]
}

#[tokio::test]
async fn a_stored_call_runs_as_it_was_looked_at() {
    for (what, change, expected, _) in changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
        let acted = Arc::new(AtomicU32::new(0));
        suspend(&service().runner(Arc::clone(&store), &acted)).await;
        let mut changed = service();
        change(&mut changed);
        let run = changed.runner(Arc::clone(&store), &acted).run(changed.options.clone());
        assert_eq!(decided(&run).await, expected, "{what}");
        assert_eq!(acted.load(Ordering::Acquire), u32::from(expected == "ok"), "{what}");
        // It still waits for a service that fits it.
        let later = service().runner(store, &acted).run(service().options);
        let expected = if ["ok", "approval_expired"].contains(&expected) { "not_pending" } else { "ok" };
        assert_eq!(decided(&later).await, expected, "{what}, afterwards");
    }
}

#[tokio::test]
async fn a_stored_call_that_was_edited_does_not_run() {
    type Edit = (&'static str, fn(&mut Value), &'static str);
    let edits: [Edit; 6] = [
        ("arguments", |call| call["arguments"] = r#"{"to":4}"#.into(), "arguments"),
        ("digest", |call| call["argument_digest"] = "00".repeat(32).into(), "arguments"),
        ("definition", |call| call["definition_hash"] = "00".repeat(32).into(), "definition"),
        ("policy", |call| call["policy_revision"] = "00".repeat(32).into(), "policy"),
        ("version", |call| call["version"] = 2.into(), "store_newer"),
        ("its own field", |call| call["approved"] = true.into(), "store_corrupt"),
    ];
    for (what, change, expected) in edits {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let store: Arc<dyn Store> = Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store"));
        let acted = Arc::new(AtomicU32::new(0));
        let run = suspend(&service().runner(Arc::clone(&store), &acted)).await;
        edit(&path, change);
        assert_eq!(decided(&run).await, expected, "{what}");
        assert_eq!(acted.load(Ordering::Acquire), 0, "{what}");
    }
}

#[tokio::test]
async fn a_token_runs_as_it_was_looked_at() {
    for (what, change, _, expected) in changes() {
        let acted = Arc::new(AtomicU32::new(0));
        let run = suspend(&service().runner(Arc::new(MemoryStore::new()), &acted)).await;
        let token = run.seal("c", &service().keys).await.expect("it waits");
        let open = async |changed: &Service| {
            let runner = changed.runner(Arc::new(MemoryStore::new()), &acted);
            match runner.open_token(&token, &changed.keys, changed.options.clone()).await {
                Ok((run, _)) => decided(&run).await,
                Err(error) => error.code().to_owned(),
            }
        };
        let mut changed = service();
        change(&mut changed);
        assert_eq!(open(&changed).await, expected, "{what}");
        assert_eq!(acted.swap(0, Ordering::AcqRel), u32::from(expected == "ok"), "{what}");
        // In a service that fits, it still opens.
        assert_eq!(open(&service()).await, "ok", "{what}, afterwards");
    }
}

#[tokio::test]
async fn a_token_that_was_edited_does_not_open() {
    let acted = Arc::new(AtomicU32::new(0));
    let run = suspend(&service().runner(Arc::new(MemoryStore::new()), &acted)).await;
    let token = run.seal("c", &service().keys).await.expect("it waits");
    let runner = service().runner(Arc::new(MemoryStore::new()), &acted);
    let newer = token.replacen("approval-1.", "approval-2.", 1);
    let mut bit = token.clone().into_bytes();
    let last = bit.len() - 9;
    bit[last] = if bit[last] == b'A' { b'B' } else { b'A' };
    let bit = String::from_utf8(bit).expect("text");
    for (edited, expected) in [(&newer, "token_version"), (&bit, "token_forged")] {
        let error = runner.open_token(edited, &service().keys, service().options).await.expect_err("edited");
        assert_eq!(error.code(), expected);
    }
    assert_eq!(acted.load(Ordering::Acquire), 0);
    let late = Service { seconds: 23 * 3600, ..service() };
    let (run, _) = late
        .runner(Arc::new(MemoryStore::new()), &acted)
        .open_token(&token, &late.keys, late.options.clone())
        .await
        .expect("it opens for a day");
    assert_eq!(decided(&run).await, "ok");
}
