//! Ids that records cannot have: what is written has one of our own, and the model hears the one that it gave.

use tests::rig::Heard;
use tool_runtime::runner::{RunOptions, ToolRunner};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{Event, Outcome, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, tool};

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

/// Calls both tools under an id of so many bytes, and returns whether record, events and context have the call's own.
async fn has_its_own(policy: &str, bytes: usize) -> bool {
    let catalog = ToolCatalog::builder().tool::<reads>().tool::<changes>().build().expect("a catalog");
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = ['ids__reads', 'ids__changes']\n{policy}"));
    let (store, heard) = (MemoryStore::new(), Heard::default());
    let runner =
        ToolRunner::builder(catalog, policy.expect("a policy")).store(store.clone()).build().expect("a runner");
    let run = runner.run(RunOptions::new().events(heard.clone()));
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
async fn an_id_that_is_too_long_for_records_is_replaced_in_them() {
    assert!(has_its_own("", 128).await);
    assert!(has_its_own("limits.call_id_bytes = 200", 128).await);
    assert!(!has_its_own("limits.call_id_bytes = 200", 129).await);
    assert!(!has_its_own("limits.call_id_bytes = 200", 200).await);
}
