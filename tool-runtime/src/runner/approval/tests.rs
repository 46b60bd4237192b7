use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolContext;
use crate::catalog::ToolCatalog;
use crate::error::ToolError;
use crate::policy::ToolPolicy;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::runner::{RunOptions, ToolRunner};
use crate::store::{AuditRecord, RecordFilter};
use crate::tool::ToolEffect;

struct Sent;

#[async_trait]
impl DynamicHandler for Sent {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!("sent"))
    }
}

#[tokio::test]
async fn a_decision_that_was_posted_is_about_what_the_call_waited_for_then() {
    let schema = json!({"type": "object"});
    let send =
        DynamicTool::new("letters__send", "Sends.", schema, ToolEffect::StateChange, Arc::new(Sent)).redact(["$"]);
    let policy = "allowed_tools = ['letters__send']\nrequire_approval_for_tools = ['letters__send']";
    let runner = ToolRunner::builder(
        ToolCatalog::builder().dynamic(send).build().unwrap(),
        ToolPolicy::from_toml(policy).unwrap(),
    );
    let run = runner.approvals(true).build().unwrap().run(RunOptions::new());
    let asked = run.exec(ToolCall::text("c1", "letters__send", "{}")).await;
    assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
    let waits = run.pending(&"c1".into()).await.unwrap().unwrap();
    // A graph that waits with its next call is not the one that waited with the call before.
    let with = |next: &str| {
        let graph = json!({"path": "graph > tool", "tool": "tool", "call_id": next, "shown_arguments": null, "rule": null,
            "refused": null, "run_id": "r", "begun": false, "document": ""});
        PendingCall { graph: serde_json::from_value(graph).unwrap(), ..waits.clone() }
    };
    assert!(with("c1").is_same(&with("c1")) && !with("c1").is_same(&with("c2")) && !with("c1").is_same(&waits));
    assert!(!posts::is_about(&[posts::finishes(&with("c1")).unwrap()], &with("c2")));
    let (now, before) = (posts::finishes(&waits).unwrap(), PendingCall { created_at: jiff::Timestamp::MIN, ..waits });
    let before = posts::finishes(&before).unwrap();
    let grace = Decider::new("grace");
    for decision in [ApprovalDecision::Approve, ApprovalDecision::Deny(None)] {
        let late = run.resume_for(None, "c1", decision, &grace, Some(std::slice::from_ref(&before))).await.unwrap();
        assert_eq!((late.outcome(), late.executed()), (Outcome::ApprovalMismatch, false));
        assert_eq!(late.error().and_then(|error| error.mismatch), Some(Mismatch::Posted));
        assert!(run.pending(&"c1".into()).await.unwrap().is_some(), "it still waits");
    }
    let sent = run.resume_for(None, "c1", ApprovalDecision::Approve, &grace, Some(&[before, now])).await.unwrap();
    assert_eq!(sent.outcome(), Outcome::Ok);
    let records = run.shared().store.records(&RecordFilter::default()).await.unwrap();
    let refused = records
        .iter()
        .filter(|sealed| matches!(&sealed.record, AuditRecord::Decision(decision) if decision.refused.is_some()));
    assert_eq!(refused.count(), 2, "each has a record of its own");
}
