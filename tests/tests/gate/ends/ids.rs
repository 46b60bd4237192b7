//! Ids of calls: records and events have the model's own id if the policy accepts it. Otherwise they have an id that
//! the library generates. The model always reads its own id.

use std::sync::Arc;
use tests::Shown as _;

use tests::world::EventLog;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{
    Event, Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// Tells the id of its call.
#[tool(name = "ids__reads", effect = read_only, redact = ["$"])]
fn reads(ctx: &ToolContext) -> Result<String, ToolError> {
    Ok(ctx.call_id().to_string())
}

/// Tells the id of its call, and has an effect.
#[tool(name = "ids__changes", effect = state_change, redact = ["$"])]
fn changes(ctx: &ToolContext) -> Result<String, ToolError> {
    Ok(ctx.call_id().to_string())
}

fn runner(policy: &str, store: Arc<dyn Store>) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<reads>().tool::<changes>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = ['ids__reads', 'ids__changes']\n{policy}"));
    ToolRunner::builder(catalog, policy.expect("a policy")).approvals(true).store(store).build().expect("a runner")
}

/// Calls both tools under an id of so many bytes, and returns whether record, events and context have the call's own.
async fn has_its_own(policy: &str, bytes: usize) -> bool {
    let (store, heard) = (MemoryStore::new(), EventLog::default());
    let run = runner(policy, Arc::new(store.clone())).run(RunOptions::new().events(heard.sink()));
    let mut own = Vec::new();
    for (tool, letter) in [("ids__reads", "r"), ("ids__changes", "c")] {
        let id = letter.repeat(bytes);
        let result = run.exec(ToolCall::text(id.as_str(), tool, "{}")).await;
        assert_eq!(result.outcome(), Outcome::Ok, "{tool}");
        assert_eq!(result.call_id().as_str(), id, "the model hears the id that it gave");
        own.push(result.to_model() == id);
        let events = heard.take();
        let record = store.calls(&RecordFilter::run(run.id())).await.expect("records").pop().expect("a record");
        assert_eq!(record.tool_call_id.as_str(), result.to_model(), "the record and the context have one id");
        assert!(!run.may_have_begun(&record.tool_call_id) && !run.may_have_begun(result.call_id()));
        let ids = events.into_iter().filter_map(|event| match event {
            Event::ToolCallStart { id, .. } | Event::ToolCallResult { id, .. } => Some(id),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), vec![record.tool_call_id; 2], "{tool}");
        let again = run.exec(ToolCall::text(id.as_str(), tool, "{}")).await;
        assert_eq!((again.outcome(), again.executed()), (Outcome::PolicyDenied, false), "{tool}: no id runs twice");
        drop(heard.take());
    }
    own[0] && own[1]
}

#[tokio::test]
async fn an_id_that_the_policy_takes_is_in_the_records() {
    assert!(has_its_own("", 128).await);
    assert!(has_its_own("limits.call_id_bytes = 200", 129).await);
    assert!(has_its_own("limits.call_id_bytes = 200", 200).await);
    assert!(has_its_own("limits.call_id_bytes = 5000", 5000).await);
}

#[tokio::test]
async fn an_id_that_the_policy_does_not_take_is_replaced_in_the_records() {
    for (policy, bytes, is_own) in [
        ("", 129, false),
        ("limits.call_id_bytes = 200", 201, false),
        // Records have an id that is refused for its length if it has at most 128 bytes.
        ("limits.call_id_bytes = 16", 128, true),
        ("limits.call_id_bytes = 16", 129, false),
    ] {
        let store = MemoryStore::new();
        let run = runner(policy, Arc::new(store.clone())).run(RunOptions::new());
        let id = "r".repeat(bytes);
        let result = run.exec(ToolCall::text(id.as_str(), "ids__reads", "{}")).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::LimitExceeded, false), "{policy} {bytes}");
        assert_eq!(result.call_id().as_str(), id, "the model hears the id that it gave");
        let record = store.calls(&RecordFilter::run(run.id())).await.expect("records").pop().expect("a record");
        assert_eq!(record.tool_call_id.as_str() == id, is_own, "{policy} {bytes}");
        assert!(record.tool_call_id.as_str().len() <= 128);
    }
}

/// A call is found again by the id that the model gave, in this process and in another one.
#[tokio::test]
async fn a_call_with_a_long_id_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let sqlite = SqlStore::sqlite(file.to_str().expect("a path"), SqlOptions::new()).await.expect("it opens");
    found_again(Arc::new(MemoryStore::new())).await;
    found_again(Arc::new(sqlite)).await;
}

async fn found_again(store: Arc<dyn Store>) {
    let id = "i".repeat(5000);
    let policy = "limits.call_id_bytes = 5000\nrequire_approval_for_tools = ['ids__changes']";
    let options = || RunOptions::new().run_id("long");
    let first = runner(policy, Arc::clone(&store)).run(options());
    let waiting = first.exec(ToolCall::text(id.as_str(), "ids__changes", "{}")).await;
    assert_eq!(waiting.outcome(), Outcome::ApprovalRequired);
    let second = runner(policy, Arc::clone(&store)).run(options());
    let ada = Decider::new("ada");
    let approved = second.resume_shown(&id, ApprovalDecision::Approve, &ada).await.expect("it waits");
    assert_eq!((approved.outcome(), approved.to_model()), (Outcome::Ok, id.clone()));
    // The first process does not know of it, and asks the ledger.
    let again = first.recorded(&id.as_str().into()).await.expect("the store").expect("a record");
    assert_eq!(again.outcome(), Outcome::Ok);
    let third = runner("limits.call_id_bytes = 5000", Arc::clone(&store)).run(options());
    let repeated = third.exec(ToolCall::text(id.as_str(), "ids__changes", "{}")).await;
    assert_eq!(repeated.outcome(), Outcome::Ok, "the stored result: {repeated:?}");
    assert_eq!(store.calls(&RecordFilter::run("long")).await.expect("records").len(), 1, "it did not run again");
}
