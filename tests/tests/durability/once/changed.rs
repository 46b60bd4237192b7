//! Definitions of a tool that change between two calls: another effect key, and another allowlist for results.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tests::world::{Door, LEASE, World as _};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{
    Outcome, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolExecResult, ToolPolicy, ToolRunner,
};

use super::{Rig, of};

/// Counts and passes the door.
struct Post(Arc<tests::world::Happened>);

#[async_trait]
impl DynamicHandler for Post {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        self.0.happen();
        let door: Door = self.0.door();
        door.pass().await;
        Ok(json!({"number": 7, "inner": "CANARY"}))
    }
}

/// A process with the tool of a version.
fn process(rig: &Rig, define: impl FnOnce(DynamicTool) -> DynamicTool) -> ToolRunner {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "day": {"type": "string"}},
        "required": ["id", "day"],
    });
    let handler = Arc::new(Post(Arc::clone(&rig.shared.world)));
    let tool = DynamicTool::new("post__letter", "Posts.", schema, ToolEffect::ExternalSideEffect, handler);
    let catalog = ToolCatalog::builder().dynamic(define(tool)).build().expect("a catalog");
    let policy = ToolPolicy::from_toml("allowed_tools = ['post__letter']").expect("a policy");
    let runner = ToolRunner::builder(catalog, policy).approvals(true).lease(LEASE).clock(Arc::clone(&rig.shared.clock));
    runner.store(Arc::clone(&rig.shared.store)).build().expect("a runner")
}

async fn exec(process: &ToolRunner, run: &str, id: &str, day: &str) -> ToolExecResult {
    let arguments = json!({"id": "l-1", "day": day}).to_string();
    process.run(of(run, "ada")).exec(ToolCall::text(id, "post__letter", arguments)).await
}

/// The same call is made again after a release changed its key. It is closed under the key with which it began.
#[tokio::test]
async fn a_call_keeps_the_key_with_which_it_began() {
    let rig = Rig::new();
    let old = || process(&rig, |tool| tool.redact(["number", "inner"]).idempotent().once("letter:{id}"));
    let new = || process(&rig, |tool| tool.redact(["number", "inner"]).idempotent().once("letter:{id}:{day}"));
    let first = old();
    std::mem::forget(rig.shared.stuck(async move { exec(&first, "run-1", "c1", "monday").await }).await);
    rig.shared.clock.advance(Duration::from_secs(31));
    rig.shared.open(9);
    let again = exec(&new(), "run-1", "c1", "monday").await;
    assert_eq!((again.outcome(), rig.shared.effects()), (Outcome::OutcomeUnknown, 1), "{}", again.to_model());
    assert_eq!(rig.shared.closed().await.len(), 1);
    // The old key waits for a person, in a process with the old definition.
    let twin = exec(&old(), "run-2", "c1", "tuesday").await;
    assert_eq!((twin.outcome(), rig.shared.effects()), (Outcome::ApprovalRequired, 1), "{}", twin.to_model());
}

/// A later definition shows less, so the result of an earlier call is not delivered.
#[tokio::test]
async fn a_result_of_another_definition_is_not_delivered() {
    let rig = Rig::new();
    rig.shared.open(9);
    let old = process(&rig, |tool| tool.redact(["number", "inner"]).once("letter:{id}"));
    assert!(exec(&old, "run-1", "c1", "monday").await.to_model().contains("CANARY"));
    let new = process(&rig, |tool| tool.redact(["number"]).once("letter:{id}"));
    let later = exec(&new, "run-2", "c1", "monday").await;
    assert_eq!((later.outcome(), later.executed(), rig.shared.effects()), (Outcome::Cancelled, false, 1));
    assert!(!later.to_model().contains("CANARY"), "{}", later.to_model());
    assert!(
        later.to_model().contains("another version of this tool already caused this effect"),
        "{}",
        later.to_model()
    );
    // With the definition of the earlier call, it still is.
    assert!(exec(&old, "run-3", "c1", "monday").await.to_model().contains("CANARY"));
}
