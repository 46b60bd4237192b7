//! Tests the tools through the gate, with the policy of the service and a warehouse in memory.

#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]
#![allow(unused_crate_dependencies, reason = "the crate's own dependencies are not this test's")]

use std::sync::Arc;

use chat_service::warehouse::Warehouse;
use chat_service::{POLICY, capabilities};
use serde_json::json;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::testing::{Fault, Harness, harness};
use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, assert_catalog_ok};

fn service() -> (Harness, Arc<Warehouse>) {
    let warehouse = Arc::new(Warehouse::default());
    let harness = harness(ToolCatalog::collect().unwrap())
        .policy(ToolPolicy::from_toml(POLICY).unwrap())
        .capabilities(capabilities(Arc::clone(&warehouse)))
        .options(RunOptions::new().principal("ada").tenant("acme"));
    (harness, warehouse)
}

fn decider(name: &str) -> Decider {
    Decider::new(name).tenant("acme")
}

#[test]
fn schemas_and_parsers_agree() {
    assert_catalog_ok!();
}

#[tokio::test]
async fn purchase_prices_are_not_shown() {
    let (service, _) = service();
    let found = service.call("stock__find", json!({ "text": "hinge" })).await;
    found.assert_value(json!([{ "id": "P-20", "name": "hinge", "in_stock": 12 }]));
    found.assert_capability_calls(["Stock::find"]);
}

#[tokio::test]
async fn an_order_waits_for_a_person() {
    let (service, warehouse) = service();
    let order = json!({ "part_id": "P-20", "count": 3 });
    // No result has contained the id yet.
    service.call("stock__order", order.clone()).await.assert_violation("/part_id");
    service.call("stock__find", json!({ "text": "hinge" })).await.assert_outcome("ok");

    let waits = service.call("stock__order", order.clone()).await;
    waits.assert_outcome("approval_required").assert_capability_calls([]);
    let approved = service.decide(&waits, ApprovalDecision::Approve, &decider("ada")).await;
    approved.assert_value(json!(1001)).assert_capability_calls(["Orders::place"]);

    let waits = service.call("stock__order", json!({ "part_id": "P-20", "count": 4 })).await;
    service.decide(&waits, ApprovalDecision::Deny(None), &decider("ada")).await.assert_outcome("approval_denied");
    assert_eq!(warehouse.placed(), 1);
}

#[tokio::test]
async fn a_large_order_needs_two_people() {
    let (service, warehouse) = service();
    service.call("stock__find", json!({ "text": "hinge" })).await.assert_outcome("ok");
    let waits = service.call("stock__order", json!({ "part_id": "P-20", "count": 101 })).await;
    let first = service.decide(&waits, ApprovalDecision::Approve, &decider("ada")).await;
    first.assert_outcome("approval_required");
    assert_eq!(warehouse.placed(), 0);
    service.decide(&first, ApprovalDecision::Approve, &decider("bob")).await.assert_value(json!(1001));
}

#[tokio::test]
async fn the_reason_of_a_failure_stays_with_operators() {
    let (service, _) = service();
    service.break_tool("stock__find", Fault::Error("no route to 10.0.0.7".to_owned()));
    let failed = service.call("stock__find", json!({ "text": "hinge" })).await;
    failed.assert_outcome("execution_error");
    assert!(!failed.to_model().contains("10.0.0.7"), "{failed}");
    service.heal("stock__find");
    service.call("stock__find", json!({ "text": "hinge" })).await.assert_outcome("ok");
}

#[tokio::test]
async fn the_browser_gets_the_question_only() {
    let (service, _) = service();
    let asked = service.call("browser__locate", json!({ "reason": "For the weather." })).await;
    asked.assert_outcome("client_required").assert_capability_calls([]);
    assert_eq!(asked.value().map(tool_runtime::call::JsonText::get), Some(r#"{"question":"For the weather."}"#));
}
