//! A tool that lost its connection states that its effect may have happened.

use std::sync::Arc;

use tests::world::{Processes, World};
use tool_runtime::{Outcome, RunOptions, ToolCall, ToolError, tool};

fn broken() -> ToolError {
    ToolError::unknown(std::io::Error::other("reset by 10.0.0.7")).with_safe("The bank said nothing.")
}

/// Pays a payment back.
#[tool(name = "lost__refund", effect = external_side_effect, redact = ["$"])]
fn refund(
    world: &dyn World,
    /// Which.
    payment_id: String,
) -> Result<String, ToolError> {
    world.happen();
    drop(payment_id);
    Err(broken())
}

/// Pays a payment back, once for the tenant.
#[tool(name = "lost__keyed", effect = external_side_effect, redact = ["$"], once = "lost:{payment_id}")]
fn keyed(
    world: &dyn World,
    /// Which.
    payment_id: String,
    /// How much.
    cents: u64,
) -> Result<String, ToolError> {
    world.happen();
    drop((payment_id, cents));
    Err(broken())
}

/// Looks a payment up.
#[tool(name = "lost__find", effect = read_only, redact = ["$"])]
fn find(
    /// Which.
    payment_id: String,
) -> Result<String, ToolError> {
    drop(payment_id);
    Err(broken())
}

fn process(shared: &Processes) -> tool_runtime::ToolRunner {
    let policy = "allowed_tools = ['lost__refund', 'lost__keyed', 'lost__find']";
    shared.start(Arc::clone(&shared.store) as _, policy, shared.capabilities())
}

async fn outcome(shared: &Processes, run: &str, principal: &str, call: ToolCall) -> (Outcome, String) {
    let options = RunOptions::new().run_id(run).principal(principal).tenant("acme");
    let result = process(shared).run(options).exec(call).await;
    (result.outcome(), result.to_model())
}

#[tokio::test]
async fn a_refund_whose_answer_is_lost_happens_once_however_often_it_is_asked_for() {
    let shared = Processes::at("2026-01-01T00:00:00Z", 0);
    let ask = |id: &str| ToolCall::text(id, "lost__refund", r#"{"payment_id":"p-1"}"#);
    let (first, said) = outcome(&shared, "run-1", "ada", ask("c1")).await;
    assert_eq!(first, Outcome::OutcomeUnknown);
    assert!(!said.contains("10.0.0.7") && said.contains("may or may not have taken effect"), "{said}");
    for (run, id) in [("run-1", "c2"), ("run-1", "c3"), ("run-2", "c1"), ("run-3", "c1")] {
        assert_eq!(outcome(&shared, run, "ada", ask(id)).await.0, Outcome::ApprovalRequired, "{run} {id}");
    }
    assert_eq!(shared.effects(), 1);
}

#[tokio::test]
async fn with_an_effect_key_neither_other_arguments_nor_another_principal_repeat_it() {
    let shared = Processes::at("2026-01-01T00:00:00Z", 0);
    let ask =
        |id: &str, cents: u64| ToolCall::text(id, "lost__keyed", format!(r#"{{"payment_id":"p-1","cents":{cents}}}"#));
    assert_eq!(outcome(&shared, "run-1", "ada", ask("c1", 1)).await.0, Outcome::OutcomeUnknown);
    for (run, principal, id, cents) in [("run-1", "ada", "c2", 2), ("run-2", "ada", "c1", 1), ("run-3", "bob", "c1", 1)]
    {
        assert_eq!(outcome(&shared, run, principal, ask(id, cents)).await.0, Outcome::ApprovalRequired, "{run} {id}");
    }
    assert_eq!(shared.effects(), 1);
}

#[tokio::test]
async fn a_tool_that_only_reads_may_be_called_again() {
    let shared = Processes::at("2026-01-01T00:00:00Z", 0);
    for id in ["c1", "c2"] {
        let call = ToolCall::text(id, "lost__find", r#"{"payment_id":"p-1"}"#);
        let (outcome, said) = outcome(&shared, "run-1", "ada", call).await;
        assert_eq!(outcome, Outcome::Cancelled);
        assert!(said.contains("may be made again") && !said.contains("10.0.0.7"), "{said}");
    }
}
