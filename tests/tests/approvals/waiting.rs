//! Waiting calls and restored runs: who may finish them, and that neither ever gets more rights.

mod again;
mod changed;
mod corrected;
mod deciders;
mod digests;
mod edges;
mod explained;
mod foreign;
mod gained;
mod grants;
mod racing;
mod records;
mod required;
mod restored;
mod several;
mod tokens;

use std::sync::Arc;
use tests::DecideShown as _;
use tests::Shown as _;

use tool_runtime::agent::{Agent, TurnOutcome};
use tool_runtime::call::{CallId, Caller, Decider};
use tool_runtime::runner::{ApprovalDecision, ResumeError, RunSnapshot};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{
    Call, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolComponent, ToolError, ToolInvocationRecord, ToolPolicy,
    ToolRunner, tool,
};

/// Changes something important.
#[tool(name = "waiting__change", effect = state_change, redact = ["$"], tags = ["web"])]
fn change(
    /// What to change it to.
    to: u8,
) -> Result<u8, ToolError> {
    Ok(to)
}

/// Changes something far away, and never returns.
#[tool(name = "waiting__hang", effect = external_side_effect, redact = ["$"])]
async fn hang() -> Result<u8, ToolError> {
    std::future::pending().await
}

/// Reads something.
#[tool(name = "waiting__read", effect = read_only, redact = ["$"])]
fn read() -> Result<u8, ToolError> {
    Ok(1)
}

/// Where the user's cursor is.
#[tool(name = "waiting__cursor", effect = read_only, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"], tags = ["web"])]
struct Cursor {}

impl ToolComponent for Cursor {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

const POLICY: &str = r#"
    allowed_tools = ["waiting__read", "waiting__cursor", "waiting__hang", "waiting__short", "waiting__page", "waiting__open"]
    require_approval_for_tools = ["waiting__change"]

    [roles.editor]
    allowed_tools = ["waiting__change"]

    [[tools.waiting__change.arguments]]
    pointer = "/to"
    equals = 13
    then = "deny"

    [labels.untrusted]
    from_tags = ["web"]
    deny_effects = ["external_side_effect"]
"#;

fn runner(policy: &str, store: &Arc<MemoryStore>) -> ToolRunner {
    let policy = ToolPolicy::from_toml(policy).expect("a policy");
    let catalog = ToolCatalog::collect().expect("a catalog");
    ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(store)).build().expect("a runner")
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run-1").principal("ada").tenant("acme").role("editor")
}

/// A decider for ada's calls.
fn grace() -> Decider {
    Decider::new("grace").tenant("acme")
}

fn graph(name: &str) -> Caller {
    Caller::Graph { run: "run-0".into(), name: name.into(), version: "1".into() }
}

/// A run with one call that waits for a person and one that waits for its client.
async fn suspended(runner: &ToolRunner, options: RunOptions) -> Run {
    let run = runner.run(options);
    let change = run.exec(ToolCall::text("person", "waiting__change", r#"{"to":3}"#)).await;
    let cursor = run.exec(ToolCall::text("client", "waiting__cursor", "{}")).await;
    assert_eq!((change.outcome(), cursor.outcome()), (Outcome::ApprovalRequired, Outcome::ClientRequired));
    assert_eq!((change.executed(), cursor.executed()), (false, true));
    run
}

async fn record(store: &MemoryStore, id: &str) -> ToolInvocationRecord {
    let filter = RecordFilter::call("run-1", CallId::new(id));
    let mut found = store.calls(&filter).await.expect("records");
    found.extend(store.open_records(&filter).await.expect("open records"));
    assert_eq!(found.len(), 1, "records of {id}");
    found.remove(0)
}

fn decisions() -> [ApprovalDecision; 4] {
    [
        ApprovalDecision::Approve,
        ApprovalDecision::ApproveEdited(r#"{"to":4}"#.into()),
        ApprovalDecision::Respond("66".into()),
        ApprovalDecision::Deny(None),
    ]
}

#[tokio::test]
async fn to_other_people_a_waiting_call_does_not_exist() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let owner = suspended(&runner, ada()).await;
    let strangers = [
        RunOptions::new().run_id("run-1").principal("mallory").tenant("acme").role("editor"),
        RunOptions::new().run_id("run-1").principal("ada").tenant("other").role("editor"),
        RunOptions::new().run_id("run-1").role("editor"),
    ];
    for options in strangers {
        let stranger = runner.run(options);
        for decision in decisions() {
            assert_eq!(
                stranger.resume_shown("person", decision, &grace()).await.expect_err("theirs").code(),
                "not_pending"
            );
        }
        assert!(stranger.expire_shown("person").await.is_err());
        assert!(stranger.abandon("person").await.is_err());
        assert!(stranger.abandon("client").await.is_err());
        assert!(stranger.client_result("client", "\"forged\"").await.is_err());
        assert!(stranger.client_failed("client").await.is_err());
    }
    for id in ["person", "client"] {
        let open = record(&store, id).await;
        assert_eq!((open.ended_at, open.principal.as_deref()), (None, Some("ada")));
    }
    assert_eq!(
        owner.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits").to_model(),
        "3"
    );
    assert_eq!(owner.client_result("client", "\"here\"").await.expect("it waits").to_model(), "here");
    assert_eq!(record(&store, "person").await.principal.as_deref(), Some("ada"));
}

#[tokio::test]
async fn what_does_not_fit_leaves_the_call_waiting() {
    let store = Arc::new(MemoryStore::new());
    let first = runner(POLICY, &store);
    let narrow = || ada().tools(["waiting__change", "waiting__cursor"]);
    suspended(&first, narrow()).await;
    let later = runner(&format!("{POLICY}\n[budgets.run]\ncalls = 9\n"), &store);
    let misfits = [
        ("another policy", later.run(narrow())),
        ("more roles", first.run(narrow().role("admin"))),
        ("more tools", first.run(ada())),
        ("another attribute", first.run(narrow().attribute("region", "north"))),
        ("another caller", first.run(narrow().caller(graph("report")))),
    ];
    for (why, run) in &misfits {
        for decision in decisions().into_iter().take(3) {
            let result = run.resume_shown("person", decision, &grace()).await.expect("it waits");
            assert_eq!(result.outcome(), Outcome::ApprovalMismatch, "{why}");
            assert!(result.detail().is_some(), "{why}");
        }
        let result = run.client_result("client", "\"x\"").await.expect("it waits");
        assert_eq!(result.outcome(), Outcome::ApprovalMismatch, "{why}");
        assert_eq!(record(&store, "person").await.ended_at, None, "{why}");
    }
    // It can be closed under any policy, and approved by a run that fits.
    let abandoned = misfits[0].1.abandon("client").await.expect("it waits");
    // The client may have executed the call. Its result is not read.
    assert_eq!((abandoned.outcome(), abandoned.executed()), (Outcome::Cancelled, true), "{}", abandoned.to_model());
    let run = first.run(narrow());
    assert_eq!(
        run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits").to_model(),
        "3"
    );
}

#[tokio::test]
async fn every_source_of_a_value_labels_the_run() {
    for way in ["client", "respond", "approve"] {
        let store = Arc::new(MemoryStore::new());
        let run = suspended(&runner(POLICY, &store), ada()).await;
        let given = match way {
            "client" => run.client_result("client", "\"x\"").await,
            "respond" => run.resume_shown("person", ApprovalDecision::Respond("5".into()), &grace()).await,
            _ => run.resume_shown("person", ApprovalDecision::Approve, &grace()).await,
        };
        assert!(given.expect("it waits").is_ok(), "{way}");
        let next = run.exec(ToolCall::text("next", "waiting__hang", "{}")).await;
        assert_eq!(next.outcome(), Outcome::PolicyDenied, "{way}");
    }
}

/// The snapshot as another process reads it.
fn moved(snapshot: &RunSnapshot) -> RunSnapshot {
    serde_json::from_str(&serde_json::to_string(snapshot).expect("a document")).expect("a snapshot")
}

#[tokio::test]
async fn a_restored_run_is_never_wider() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let run = runner.run(ada().tools(["waiting__read", "waiting__cursor"]));
    for id in ["1", "2"] {
        assert!(run.exec(ToolCall::text(id, "waiting__read", "{}")).await.is_ok());
    }
    run.exec(ToolCall::text("client", "waiting__cursor", "{}")).await;
    let snapshot = run.snapshot().await.expect("a snapshot");
    for other in [ada().principal("eve"), ada().tenant("other"), RunOptions::new()] {
        let error = runner.restore(moved(&snapshot), other).await.expect_err("not theirs");
        assert!(matches!(error, ResumeError::OtherPrincipal));
    }
    let error = runner.restore(moved(&snapshot), ada().caller(graph("report"))).await.expect_err("not its caller");
    assert_eq!(error.code(), "other_caller");
    // Neither the tools nor the roles that the options add are taken.
    let wide = RunOptions::new().principal("ada").tenant("acme").role("editor").role("admin");
    let restored = runner.restore(moved(&snapshot), wide).await.expect("a run");
    let change = restored.exec(ToolCall::text("3", "waiting__change", r#"{"to":1}"#)).await;
    assert_eq!(change.outcome(), Outcome::PolicyDenied);
    assert!(restored.catalog().get("waiting__change").is_none());
    // The restored run finishes the waiting calls, and continues the count of identical calls.
    assert!(restored.client_result("client", "\"x\"").await.expect("it waits").is_ok());
    for (id, expected) in [("4", Outcome::Ok), ("5", Outcome::Ok), ("6", Outcome::BudgetExceeded)] {
        assert_eq!(restored.exec(ToolCall::text(id, "waiting__read", "{}")).await.outcome(), expected, "{id}");
    }
}

#[tokio::test]
async fn the_loop_guard_survives_a_restore() {
    let store = Arc::new(MemoryStore::new());
    let runner = runner(POLICY, &store);
    let mut run = runner.run(ada());
    for (id, expected) in [("1", Outcome::Ok), ("2", Outcome::Ok), ("3", Outcome::BudgetExceeded)] {
        assert_eq!(run.exec(ToolCall::text(id, "waiting__read", "{}")).await.outcome(), expected, "{id}");
        run = runner.restore(moved(&run.snapshot().await.expect("a snapshot")), ada()).await.expect("a run");
    }
}

#[tokio::test(start_paused = true)]
async fn begun_effects_are_unknown_wherever_the_run_continues() {
    let run = runner(POLICY, &Arc::new(MemoryStore::new())).run(ada());
    let call = run.exec(ToolCall::text("hangs", "waiting__hang", "{}"));
    let limit = std::time::Duration::from_millis(10);
    assert!(tokio::time::timeout(limit, call).await.is_err());
    let id = CallId::new("hangs");
    assert!(run.may_have_begun(&id));
    let snapshot = moved(&run.snapshot().await.expect("a snapshot"));
    // Another process, whose store has no record of the call.
    let elsewhere = runner(POLICY, &Arc::new(MemoryStore::new()));
    let restored = elsewhere.restore(snapshot, ada()).await.expect("a run");
    let told = restored.recorded(&id).await.expect("a store").expect("it began");
    assert_eq!((told.outcome(), told.executed()), (Outcome::OutcomeUnknown, true));
    assert!(restored.recorded(&CallId::new("never")).await.expect("a store").is_none());
}

#[tokio::test]
async fn a_hydrated_call_belongs_to_its_run() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (runner(POLICY, &store), runner(POLICY, &store));
    let hydrate = |run: &Run| {
        run.hydrate([ToolCall::text("h", "waiting__read", "{}")]).remove(0).hydrated.expect("good arguments")
    };
    let run = one.run(ada());
    for foreign in [one.run(ada()), other.run(ada())] {
        let result = run.exec_hydrated(hydrate(&foreign)).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::PolicyDenied, false));
    }
    let run = one.run(ada().run_id("run-2"));
    let hydrated = hydrate(&run);
    assert!(run.exec_hydrated(hydrated).await.is_ok());
}

#[tokio::test]
async fn a_refusals_message_is_bounded_and_clean() {
    let run = suspended(&runner(POLICY, &Arc::new(MemoryStore::new())), ada()).await;
    let message = format!("\u{1b}]52;c;x\u{7}{}", "no ".repeat(1 << 20));
    let result = run.resume_shown("person", ApprovalDecision::Deny(Some(message)), &grace()).await.expect("it waits");
    let text = &result.error().expect("a refusal").safe_message;
    assert!(text.len() <= 2050 && !text.chars().any(char::is_control), "{} bytes", text.len());
}

#[tokio::test]
async fn a_clients_result_is_no_longer_than_a_result_may_be() {
    let run = suspended(&runner(POLICY, &Arc::new(MemoryStore::new())), ada()).await;
    let result = run.client_result("client", &format!("\"{}\"", "x".repeat(33 * 1024))).await.expect("it waits");
    assert_eq!(result.outcome(), Outcome::ApprovalMismatch);
    assert!(result.detail().expect("a reason").contains("result_too_large"));
}

#[tokio::test]
async fn a_conversation_keeps_a_call_that_its_run_does_not_fit() {
    let store = Arc::new(MemoryStore::new());
    let first = runner(POLICY, &store);
    let call = ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#);
    let agent = Agent::new(Arc::new(ScriptedModel::new([call, ScriptedTurn::text("As you wish.")])));
    let mut conversation = agent.converse(first.run(ada()));
    assert!(matches!(conversation.send("Change it.").await, TurnOutcome::Waiting { .. }));
    let saved = conversation.save().await.expect("a store");
    let later = runner(&format!("{POLICY}\n[budgets.run]\ncalls = 9\n"), &store);
    let mut conversation = agent.restore(&later, ada(), saved).await.expect("a run");
    let id = CallId::new("person");
    let ended = conversation.decide_shown(&id, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    let ended = conversation.decide_shown(&id, ApprovalDecision::Deny(None), &grace()).await.expect("it still waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
}

/// Runs a query.
#[tool(name = "waiting__query", effect = read_only, redact = ["$"], allow_no_schema, no_schema_mode = approve_each)]
fn query(
    /// The query.
    query: serde_json::Value,
) -> Result<bool, ToolError> {
    Ok(query.is_object())
}

#[tokio::test]
async fn a_run_for_tests_lets_calls_wait() {
    let catalog = ToolCatalog::builder().tool::<query>().build().unwrap();
    let harness = tool_runtime::testing::harness(catalog);
    let waits = harness.call("waiting__query", serde_json::json!({ "query": {} })).await;
    waits.assert_outcome("approval_required");
    let done = harness.decide(&waits, ApprovalDecision::Approve, &tests::grace()).await;
    done.assert_value(true.into());
}
