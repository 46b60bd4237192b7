//! The gate evaluates the policies when it shows tools, when it admits a call, and when it has the arguments.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::call::{Decider, Outcome, ToolCall, ToolContext};
use crate::catalog::ToolCatalog;
use crate::error::ToolError;
use crate::registration::{DynamicHandler, DynamicTool};
use crate::runner::{ApprovalDecision, RunOptions, ToolRunner};
use crate::store::RecordFilter;

struct Done;

#[async_trait]
impl DynamicHandler for Done {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({ "done": true }))
    }
}

const CEDAR: &str = r#"
    permit(principal, action, resource);

    @id("no-guests")
    forbid(principal in Role::"guest", action == Action::"pay__send", resource);

    @id("small-sums")
    forbid(principal, action == Action::"pay__send", resource)
    when { context.arguments.amount.greaterThan(decimal("1000.0")) };

    @id("second-look")
    @approval("required")
    forbid(principal, action == Action::"pay__send", resource)
    when { context.arguments.amount.greaterThan(decimal("100.0")) }
    unless { principal.clearance.contains("treasurer") };

    @id("after-reading")
    forbid(principal, action in Action::"external_side_effect", resource)
    when { context.labels.contains("untrusted") };
"#;

fn runner(cedar: &str) -> Result<ToolRunner, String> {
    let amount = json!({ "type": "object", "properties": { "amount": { "type": "number" } }, "required": ["amount"] });
    let nothing = json!({ "type": "object", "properties": {} });
    let pay = DynamicTool::new("pay__send", "Pays.", amount, ToolEffect::ExternalSideEffect, Arc::new(Done));
    let read = DynamicTool::new("pay__read", "Reads.", nothing, ToolEffect::ReadOnly, Arc::new(Done));
    let catalog = ToolCatalog::builder().dynamic(pay.redact(["done"])).dynamic(read.redact(["done"]).tags(["web"]));
    let written = json!({
        "allowed_tools": ["pay__send", "pay__read"],
        "labels": { "untrusted": { "from_tags": ["web"] } },
        "cedar": { "policies": cedar },
    });
    let policy = ToolPolicy::from_json(&written.to_string()).map_err(|error| error.to_string())?;
    let runner = ToolRunner::builder(catalog.build().unwrap(), policy).approvals(true).build();
    runner.map_err(|error| error.to_string())
}

/// A rule of Cedar that requires an approval needs an approver, like any other rule.
#[test]
fn a_runner_says_whether_somebody_can_approve() {
    let catalog = || {
        let nothing = json!({ "type": "object", "properties": {} });
        let pay = DynamicTool::new("pay__send", "Pays.", nothing, ToolEffect::ExternalSideEffect, Arc::new(Done));
        ToolCatalog::builder().dynamic(pay.redact(["done"])).build().unwrap()
    };
    let policy = |annotation: &str| {
        let cedar = format!(
            "permit(principal, action, resource); @id(\"look\") {annotation} forbid(principal, action == Action::\"pay__send\", resource);"
        );
        let written = json!({ "allowed_tools": ["pay__send"], "cedar": { "policies": cedar } });
        ToolPolicy::from_json(&written.to_string()).unwrap()
    };
    let asks = policy("@approval(\"required\")");
    let refused = ToolRunner::builder(catalog(), asks.clone()).build().unwrap_err().to_string();
    assert!(refused.contains("(cedar:look)"), "{refused}");
    ToolRunner::builder(catalog(), asks.clone()).approvals(false).build().unwrap();
    ToolRunner::builder(catalog(), policy("")).build().unwrap();
    #[cfg(feature = "mcp-server")]
    {
        let runner = ToolRunner::builder(catalog(), asks).approvals(true).build().unwrap();
        let admits = |_: &crate::mcp::serve::Peer<'_>| Some(RunOptions::new());
        let refused = crate::mcp::serve::McpServer::builder(runner, admits).build().unwrap_err();
        assert_eq!(refused.code(), "mcp_unreachable");
    }
}

#[tokio::test]
async fn cedar_decides_at_all_three_stages() {
    let runner = runner(CEDAR).unwrap();
    let pay = async |options: RunOptions, amount: f64| {
        let run = runner.run(options);
        let shown = run.catalog().get("pay__send").is_some();
        let ended = run.exec(ToolCall::text("c", "pay__send", json!({ "amount": amount }).to_string())).await;
        (run, shown, ended.outcome())
    };
    let (_, shown, outcome) = pay(RunOptions::new().role("guest"), 1.0).await;
    assert_eq!((shown, outcome), (false, Outcome::PolicyDenied));
    let (run, shown, outcome) = pay(RunOptions::new(), 1000.5).await;
    assert_eq!((shown, outcome), (true, Outcome::PolicyDenied));
    let records = runner.store().records(&RecordFilter::call(run.id(), "c".into())).await.unwrap();
    assert_eq!(records[0].record.as_call().unwrap().decision.as_ref().unwrap().rule, "cedar:small-sums");
    let (run, _, outcome) = pay(RunOptions::new(), 100.0).await;
    assert_eq!(outcome, Outcome::Ok);
    // The label that the result of `pay__read` put on the run counts from then on.
    assert!(run.exec(ToolCall::text("read", "pay__read", "{}")).await.is_ok());
    let again = run.exec(ToolCall::text("again", "pay__send", r#"{"amount":1}"#)).await;
    assert_eq!(again.outcome(), Outcome::PolicyDenied);
}

#[tokio::test]
async fn an_approval_is_asked_and_edits_are_decided_again() {
    let runner = runner(CEDAR).unwrap();
    let ask = async || {
        let run = runner.run(RunOptions::new());
        let waits = run.exec(ToolCall::text("c", "pay__send", r#"{"amount":500}"#)).await;
        assert_eq!(waits.outcome(), Outcome::ApprovalRequired);
        (run, waits.question().unwrap().clone())
    };
    let (run, question) = ask().await;
    let approved = run.resume(&question, ApprovalDecision::Approve, &Decider::new("grace")).await.unwrap();
    assert_eq!(approved.outcome(), Outcome::Ok);
    let edited = ApprovalDecision::ApproveEdited(r#"{"amount":5000}"#.into());
    let (run, question) = ask().await;
    let refused = run.resume(&question, edited, &Decider::new("grace")).await.unwrap();
    assert_eq!(refused.outcome(), Outcome::ApprovalMismatch);
    let treasurer = runner.run(RunOptions::new().attribute("clearance", "treasurer"));
    assert!(treasurer.problems().is_empty());
    assert!(treasurer.exec(ToolCall::text("c", "pay__send", r#"{"amount":500}"#)).await.is_ok());
}

#[test]
fn a_policy_that_does_not_fit_builds_no_runner() {
    let error = runner(&CEDAR.replace("arguments.amount", "arguments.amuont")).unwrap_err();
    assert!(error.contains("`cedar.small-sums`") && error.contains("`arguments.amuont`"), "{error}");
}
