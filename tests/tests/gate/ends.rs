//! The gate from outside: every way a call can end, one record and one terminal event each, and the next call works.

mod edges;
mod ids;
mod written;

use std::sync::Arc;
use std::time::Duration;
use tests::Shown as _;

use serde_json::{Value, json};
use tests::grace;
use tests::world::EventLog;
use tool_runtime::Call;
use tool_runtime::call::Verdict;
use tool_runtime::runner::{ApprovalDecision, Run, RunOptions, ToolRunner};
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{
    Event, Outcome, ToolCall, ToolCatalog, ToolComponent, ToolContext, ToolEffect, ToolError, ToolExecResult,
    ToolPolicy, tool,
};

/// Adds two numbers.
#[tool(name = "gate__add", effect = read_only, redact = ["$"])]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::code("overflow").with_safe("The sum is too large."))
}

/// Panics.
#[tool(name = "gate__panic", effect = read_only, redact = ["$"])]
fn panics() -> Result<bool, ToolError> {
    panic!("on purpose");
}

/// Panics after it changed something.
#[tool(name = "gate__panic_effect", effect = state_change, redact = ["$"])]
fn panics_with_effect() -> Result<bool, ToolError> {
    panic!("on purpose");
}

/// Never answers.
#[tool(name = "gate__hang", effect = read_only, redact = ["$"], timeout = "1s")]
async fn hangs() -> Result<bool, ToolError> {
    std::future::pending().await
}

/// Never answers, after it changed something.
#[tool(name = "gate__hang_effect", effect = external_side_effect, redact = ["$"], timeout = "1s")]
async fn hangs_with_effect() -> Result<bool, ToolError> {
    std::future::pending().await
}

/// Returns NaN.
#[tool(name = "gate__nan", effect = read_only, redact = ["$"])]
fn nan() -> Result<f64, ToolError> {
    Ok(f64::NAN)
}

/// Answers with 50 MB.
#[tool(name = "gate__huge", effect = read_only, redact = ["$"])]
fn huge() -> Result<Vec<String>, ToolError> {
    Ok(vec!["x".repeat(1000); 50_000])
}

/// Fails with a text for operators only.
#[tool(name = "gate__fail", effect = read_only, redact = ["$"])]
fn fails() -> Result<bool, std::io::Error> {
    Err(std::io::Error::other("CANARY"))
}

/// Returns its idempotency key.
#[tool(name = "gate__key", effect = read_only, redact = ["$"])]
fn key(
    ctx: &ToolContext,
    /// Anything.
    salt: u8,
) -> Result<String, ToolError> {
    let _ = salt;
    Ok(ctx.idempotency_key())
}

/// Changes something important.
#[tool(name = "gate__change", effect = state_change, redact = ["$"])]
pub(crate) struct Change {
    /// What to change it to.
    #[schemars(range(min = 1, max = 9))]
    to: u8,
}

impl ToolComponent for Change {
    type Capabilities = ();
    type Output = u8;

    async fn run(self, (): (), _call: &Call<Self>) -> Result<u8, ToolError> {
        Ok(self.to)
    }
}

struct Rig {
    runner: ToolRunner,
    run: Run,
    store: Arc<MemoryStore>,
    heard: EventLog,
}

const TOOLS: [&str; 10] = [
    "gate__add",
    "gate__panic",
    "gate__panic_effect",
    "gate__hang",
    "gate__hang_effect",
    "gate__nan",
    "gate__huge",
    "gate__fail",
    "gate__key",
    "gate__change",
];

fn rig(policy: ToolPolicy) -> Rig {
    let catalog = ToolCatalog::collect().expect("a catalog");
    let store = Arc::new(MemoryStore::new());
    let runner =
        ToolRunner::builder(catalog, policy).approvals(true).store(Arc::clone(&store)).build().expect("a runner");
    let heard = EventLog::default();
    let run = runner.run(RunOptions::new().principal("ada").events(heard.sink()));
    Rig { runner, run, store, heard }
}

impl Rig {
    async fn exec(&self, id: &str, name: &str, arguments: &str) -> ToolExecResult {
        self.run.exec(ToolCall::text(id, name, arguments)).await
    }

    /// Exactly one record and one terminal event carry this id, and they agree.
    #[track_caller]
    fn settled(&self, records: &[tool_runtime::ToolInvocationRecord], id: &str, outcome: Outcome) {
        let found: Vec<_> = records.iter().filter(|record| record.tool_call_id.as_str() == id).collect();
        assert_eq!(found.len(), 1, "records of {id}");
        assert_eq!(found[0].outcome, outcome);
        assert!(found[0].ended_at.is_some());
        let events = self.heard.events();
        let starts =
            events.iter().filter(|event| matches!(event, Event::ToolCallStart { id: of, .. } if of.as_str() == id));
        assert_eq!(starts.count(), 1, "starts of {id}");
        let ends: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::ToolCallResult { id: of, outcome, .. } if of.as_str() == id => Some(*outcome),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [outcome], "terminal events of {id}");
    }

    async fn records(&self) -> Vec<tool_runtime::ToolInvocationRecord> {
        let all = RecordFilter::default();
        let mut records = self.store.calls(&all).await.expect("records");
        records.extend(self.store.open_records(&all).await.expect("open records"));
        records
    }
}

/// Checks that a record explains the end of its call: the rule that decided, the validator, and the violations.
#[track_caller]
fn explains(record: &tool_runtime::ToolInvocationRecord) {
    let verdict = record.decision.as_ref().map(|decision| decision.verdict);
    if record.executed {
        assert!(record.definition_hash.is_some() && record.validator.is_some(), "{record:?}");
        assert!(verdict.is_some_and(|verdict| verdict != Verdict::Deny), "{record:?}");
    }
    match record.outcome {
        Outcome::Ok => assert!(record.result.is_some() && record.safe_message.is_none(), "{record:?}"),
        Outcome::PolicyDenied => assert_eq!(verdict, Some(Verdict::Deny), "{record:?}"),
        Outcome::ValidationError => {
            assert!(!record.violations.is_empty() && record.validator.is_some(), "{record:?}");
            assert!(record.violations.iter().all(|violation| !violation.keyword.is_empty()), "{record:?}");
        }
        _ => assert!(record.safe_message.is_some(), "{record:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_end_has_one_record_and_one_event() {
    let cases = [
        ("gate__add", r#"{"a":1,"b":2}"#, Outcome::Ok),
        ("gate__add", "", Outcome::ValidationError),
        ("gate__add", r#"{"a":1,"b":2"#, Outcome::InvalidJson),
        ("gate__add", r#"{"a":1,"b":2,"c":3}"#, Outcome::ValidationError),
        ("gate__add", r#"{"a":1,"a":1,"b":2}"#, Outcome::InvalidJson),
        ("gate__add", r#"{"a":9223372036854775807,"b":1}"#, Outcome::ExecutionError),
        ("gate__ad", "{}", Outcome::Unavailable),
        ("", "{}", Outcome::Unavailable),
        ("gate__panic", "{}", Outcome::Panicked),
        ("gate__panic_effect", "{}", Outcome::OutcomeUnknown),
        ("gate__hang", "{}", Outcome::Timeout),
        ("gate__hang_effect", "{}", Outcome::OutcomeUnknown),
        ("gate__nan", "{}", Outcome::OutputInvalid),
        ("gate__fail", "{}", Outcome::ExecutionError),
        ("gate__change", r#"{"to":10}"#, Outcome::ValidationError),
        ("gate__change", r#"{"to":9}"#, Outcome::Ok),
    ];
    let rig = rig(ToolPolicy::allow(TOOLS));
    for (at, (name, arguments, expected)) in cases.iter().enumerate() {
        let id = format!("call_{at}");
        let result = rig.exec(&id, name, arguments).await;
        assert_eq!(result.outcome(), *expected, "{name} {arguments}");
        assert_eq!(result.call_id().as_str(), id);
        assert!(!result.to_model().contains("CANARY"));
        rig.settled(&rig.records().await, &id, *expected);
    }
    rig.records().await.iter().for_each(explains);
    let nested = "[".repeat(10_000);
    assert_eq!(rig.exec("deep", "gate__add", &nested).await.outcome(), Outcome::LimitExceeded);
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(rig.exec("long", "gate__add", &long).await.outcome(), Outcome::LimitExceeded);
    assert_eq!(rig.exec("last", "gate__add", r#"{"a":5,"b":6}"#).await.to_model(), "11");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_stays_valid_json() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    let result = rig.exec("big", "gate__huge", "{}").await;
    assert_eq!(result.outcome(), Outcome::Ok);
    let value: Value = serde_json::from_str(result.value().as_ref().expect("a value").get()).expect("JSON");
    assert!(value.is_array());
    assert!(result.value().expect("a value").get().len() <= 32 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_leaves_its_record() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    // Never polled.
    drop(rig.run.exec(ToolCall::text("unpolled", "gate__hang_effect", "{}")));
    rig.settled(&rig.records().await, "unpolled", Outcome::Cancelled);
    // Dropped inside the tool.
    for (id, name, expected) in
        [("read", "gate__hang", Outcome::Cancelled), ("effect", "gate__hang_effect", Outcome::OutcomeUnknown)]
    {
        let call = rig.run.exec(ToolCall::text(id, name, "{}"));
        assert!(tokio::time::timeout(Duration::from_millis(10), call).await.is_err());
        let records = rig.records().await;
        rig.settled(&records, id, expected);
        let record = records.iter().find(|record| record.tool_call_id.as_str() == id).expect("a record");
        assert_eq!((record.cause(), record.executed), (Some("cancelled"), true));
    }
    assert!(rig.exec("next", "gate__add", r#"{"a":1,"b":1}"#).await.is_ok());
}

#[tokio::test]
async fn denied_and_unknown_read_alike() {
    let rig = rig(ToolPolicy::allow(["gate__add"]));
    let denied = rig.exec("a", "gate__change", r#"{"to":1}"#).await;
    let unknown = rig.exec("b", "gate__nothing", r#"{"to":1}"#).await;
    assert_eq!((denied.outcome(), unknown.outcome()), (Outcome::PolicyDenied, Outcome::Unavailable));
    assert_eq!(denied.to_model(), unknown.to_model());
    assert!(rig.run.catalog().get("gate__change").is_none());
}

#[tokio::test]
async fn a_run_uses_its_own_tools_only() {
    let catalog = ToolCatalog::collect().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::allow(TOOLS)).build().expect("a runner");
    let run = runner.run(RunOptions::new().tools(["gate__add"]));
    let outcome = run.exec(ToolCall::text("a", "gate__change", r#"{"to":1}"#)).await.outcome();
    assert_eq!(outcome, Outcome::PolicyDenied);
}

#[tokio::test]
async fn a_call_id_runs_once() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    assert!(rig.exec("same", "gate__change", r#"{"to":1}"#).await.is_ok());
    let again = rig.exec("same", "gate__change", r#"{"to":1}"#).await;
    assert_eq!((again.outcome(), again.executed()), (Outcome::PolicyDenied, false));
    rig.settled(&rig.records().await, "same", Outcome::Ok);
}

#[tokio::test]
async fn an_unclean_turn_runs_nothing() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    let call = ToolCall::text("cut", "gate__change", r#"{"to":1}"#).incomplete();
    let result = rig.run.exec(call).await;
    assert_eq!((result.outcome(), result.executed()), (Outcome::IncompleteCall, false));
    // The turn may have been cut off, or have an item that the client does not support.
    let text = result.to_model();
    assert!(text.contains("did not end as it should") && !text.contains("cut off"), "{text}");
}

#[tokio::test]
async fn budgets_and_the_loop_guard_stop_a_run() {
    let policy = json!({"allowed_tools": TOOLS, "budgets": {"run": {"calls": 4}}});
    let rig = rig(ToolPolicy::from_json(&policy.to_string()).unwrap());
    let same = r#"{"a":1,"b":1}"#;
    assert_eq!(rig.exec("1", "gate__add", same).await.to_model(), "2");
    let warned = rig.exec("2", "gate__add", same).await;
    assert!(
        warned.is_ok() && warned.to_model().starts_with("2\n\nNote: you made the same call"),
        "a second time is allowed, with a note"
    );
    assert_eq!(rig.exec("3", "gate__add", same).await.outcome(), Outcome::BudgetExceeded);
    assert!(rig.exec("4", "gate__add", r#"{"a":1,"b":2}"#).await.is_ok());
    assert!(rig.exec("5", "gate__add", r#"{"a":1,"b":3}"#).await.is_ok());
    assert_eq!(rig.exec("6", "gate__add", r#"{"a":1,"b":4}"#).await.outcome(), Outcome::BudgetExceeded);
}

#[tokio::test]
async fn the_third_failed_turn_ends_the_turn() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    for (turn, asks) in [(1, false), (2, true), (3, true)] {
        rig.run.begin_turn();
        // Several failures of one turn are one failed turn.
        for call in ["a", "b", "c"] {
            let result = rig.exec(&format!("{turn}{call}"), "gate__add", "{}").await;
            assert_eq!(result.outcome(), Outcome::ValidationError);
            assert_eq!(result.to_model().contains("ask the user"), asks, "turn {turn}");
        }
        assert_eq!(rig.run.should_end_turn(), turn == 3);
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_call_of_one_run() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    // Providers count call ids from 0 in every response, so each of these has the same one.
    let key = async |options: RunOptions, salt: u8| {
        let run = rig.runner.run(options);
        run.exec(ToolCall::text("call_0", "gate__key", format!(r#"{{"salt":{salt}}}"#))).await.to_model()
    };
    let first = key(RunOptions::new().run_id("one"), 1).await;
    assert_eq!((first.len(), key(RunOptions::new().run_id("one"), 1).await), (64, first.clone()), "a retry");
    for (other, salt) in [
        (RunOptions::new().run_id("two"), 1),
        (RunOptions::new().run_id("one").tenant("acme"), 1),
        (RunOptions::new().run_id("one").tenant(""), 1),
        (RunOptions::new().run_id("one"), 2),
        (RunOptions::new(), 1),
    ] {
        assert_ne!(key(other, salt).await, first);
    }
    let same = rig.runner.run(RunOptions::new().run_id("one"));
    let other_id = same.exec(ToolCall::text("call_1", "gate__key", r#"{"salt":1}"#)).await.to_model();
    assert_ne!(other_id, first);
}

fn asking() -> ToolPolicy {
    ToolPolicy::allow(TOOLS).with_approval_for_effects([ToolEffect::StateChange])
}

#[tokio::test]
async fn an_approved_call_runs_once() {
    let rig = rig(asking());
    let waiting = rig.exec("w", "gate__change", r#"{"to":3}"#).await;
    assert_eq!((waiting.outcome(), waiting.executed()), (Outcome::ApprovalRequired, false));
    let open = rig.records().await;
    assert_eq!((open.len(), open[0].ended_at), (1, None));
    assert!(rig.run.summary().calls.is_empty(), "a call that waits has not ended");
    let result = rig.run.resume_shown("w", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(result.to_model(), "3");
    rig.settled(&rig.records().await, "w", Outcome::Ok);
    assert_eq!(rig.run.summary().calls.into_iter().collect::<Vec<_>>(), [(Outcome::Ok, 1)]);
    assert!(
        rig.run.resume_shown("w", ApprovalDecision::Approve, &grace()).await.is_err(),
        "a second time there is nothing to resume"
    );
}

#[tokio::test]
async fn a_person_may_edit_refuse_or_answer() {
    let rig = rig(asking());
    let cases = [
        (ApprovalDecision::ApproveEdited(r#"{"to":4}"#.into()), Outcome::Ok, "4"),
        (ApprovalDecision::Deny(Some("Not today.".into())), Outcome::ApprovalDenied, "Not today."),
        (ApprovalDecision::Respond(json!(8).to_string()), Outcome::Ok, "8"),
    ];
    for (at, (decision, expected, text)) in cases.into_iter().enumerate() {
        let id = format!("p{at}");
        rig.exec(&id, "gate__change", &format!(r#"{{"to":{}}}"#, at + 1)).await;
        let result = rig.run.resume_shown(&id, decision, &grace()).await.expect("it waits");
        assert_eq!(result.outcome(), expected, "{id}");
        assert!(result.to_model().contains(text), "{id}: {}", result.to_model());
        rig.settled(&rig.records().await, &id, expected);
    }
    rig.exec("late", "gate__change", r#"{"to":9}"#).await;
    assert_eq!(rig.run.expire_shown("late").await.expect("it waits").outcome(), Outcome::ApprovalExpired);
    rig.settled(&rig.records().await, "late", Outcome::ApprovalExpired);
}

#[tokio::test]
async fn hydration_is_a_step_of_its_own() {
    let rig = rig(ToolPolicy::allow(TOOLS));
    let calls = [
        ToolCall::text("h1", "gate__add", r#"{"a":2,"b":2}"#),
        ToolCall::text("h2", "gate__add", "{"),
        ToolCall::text("h3", "gate__none", "{}"),
    ];
    let mut results = rig.run.hydrate(calls).into_iter();
    assert!(rig.records().await.is_empty(), "hydrating runs and records nothing");
    let hydrated = results.next().expect("one each").hydrated.expect("good arguments");
    let failed: Vec<_> = results.map(|result| result.hydrated.expect_err("bad").error_code).collect();
    assert_eq!(failed, [Outcome::InvalidJson, Outcome::Unavailable]);
    assert_eq!(rig.run.exec_hydrated(hydrated).await.to_model(), "4");
    rig.settled(&rig.records().await, "h1", Outcome::Ok);
}
