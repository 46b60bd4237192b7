use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::ToolContext;
use crate::catalog::ToolCatalog;
use crate::error::ToolError;
use crate::policy::ToolPolicy;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::runner::{RunOptions, ToolRunner};
use crate::store::Store as _;
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
async fn a_decision_answers_the_question_that_the_call_asks_now() {
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
    assert_eq!(asked.question(), Some(&waits.question()));
    let read: Question = serde_json::from_value(json!(waits.question())).unwrap();
    assert_eq!(read, waits.question());
    // A graph that waits for its next call asks another question than before.
    let with = |next: &str| {
        let question = Question::unknown(&next.into());
        let graph = json!({"path": "graph > tool", "tool": "tool", "call_id": next, "question": question,
            "shown_arguments": null, "rule": null, "refused": null, "run_id": "r", "begun": false, "document": ""});
        PendingCall { graph: serde_json::from_value(graph).unwrap(), ..waits.clone() }
    };
    assert!(with("c1").is_same(&with("c1")) && !with("c1").is_same(&with("c2")) && !with("c1").is_same(&waits));
    assert_eq!(with("c1").question(), with("c1").question());
    let others = [
        with("c1"),
        with("c2"),
        PendingCall { created_at: jiff::Timestamp::MIN, ..waits.clone() },
        PendingCall { tenant: Some("other".into()), ..waits.clone() },
        PendingCall { run_id: "other".into(), ..waits.clone() },
        PendingCall { shown_arguments: crate::call::JsonText::null(), ..waits.clone() },
    ]
    .map(|other| other.question());
    let grace = Decider::new("grace");
    for (at, other) in others.iter().enumerate() {
        assert!(*other != waits.question() && !others[..at].contains(other), "{at}");
        let decision = if at % 2 == 0 { ApprovalDecision::Approve } else { ApprovalDecision::Deny(None) };
        let late = run.resume(other, decision, &grace).await.unwrap();
        assert_eq!((late.outcome(), late.executed()), (Outcome::ApprovalMismatch, false));
        assert_eq!(late.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
        assert!(run.may_decide(other, &grace).await.is_err());
        assert_eq!(run.expire(other).await.unwrap().outcome(), Outcome::ApprovalMismatch);
        assert!(run.pending(&"c1".into()).await.unwrap().is_some(), "it still waits");
    }
    run.may_decide(&waits.question(), &grace).await.unwrap();
    let sent = run.resume(&waits.question(), ApprovalDecision::Approve, &grace).await.unwrap();
    assert_eq!(sent.outcome(), Outcome::Ok);
    let records = run.shared().store.records(&RecordFilter::default()).await.unwrap();
    let refused = records
        .iter()
        .filter(|sealed| matches!(&sealed.record, AuditRecord::Decision(decision) if decision.refused.is_some()));
    assert_eq!(refused.count(), 2 * others.len(), "each has a separate record");
}
