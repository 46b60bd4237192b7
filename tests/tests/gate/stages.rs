//! Each check of the gate, seen from outside. Each row has a call that would end otherwise without the row's check.

mod edges;

use std::sync::Arc;
use std::time::Duration;
use tests::Shown as _;

use async_trait::async_trait;
use serde_json::{Value, json};
use tests::world::{Cursor, EventLog};
use tool_runtime::call::{Decider, Violation};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{Clock, MemoryStore};
use tool_runtime::testing::ManualClock;
use tool_runtime::{
    Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy, ToolRunner, tool,
};

/// Finds a task.
#[tool(name = "stages__find", effect = read_only, redact = ["$"])]
fn find(
    /// The task's id.
    task_id: String,
) -> Result<String, ToolError> {
    Ok(task_id)
}

/// Changes a task.
#[tool(name = "stages__change", effect = state_change, redact = ["$"], require_any = [title, done], tags = ["write"])]
fn change(
    /// Its new title.
    title: Option<String>,
    /// Whether it is done.
    done: Option<bool>,
) -> Result<String, ToolError> {
    Ok(format!("{title:?} {done:?}"))
}

/// Lists ids.
#[tool(name = "stages__list", effect = read_only, redact = ["$"], tags = ["web"])]
fn list() -> Result<Vec<String>, ToolError> {
    Ok(vec!["item-1".to_owned()])
}

/// Picks what was listed.
#[tool(name = "stages__pick", effect = read_only, redact = ["$"])]
fn pick(
    /// Which.
    #[arg(evidence = "stages__list")]
    item: String,
) -> Result<String, ToolError> {
    Ok(item)
}

/// Takes what its author finds right.
#[tool(name = "stages__even", effect = read_only, redact = ["$"], validate = is_even)]
fn even(
    /// A number.
    n: u64,
) -> Result<u64, ToolError> {
    Ok(n)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "hooks borrow their arguments")]
fn is_even(n: &u64) -> Result<(), Violation> {
    if n.is_multiple_of(2) { Ok(()) } else { Err(Violation::at("/n", "an even number")) }
}

/// Takes its time.
#[tool(name = "stages__slow", effect = read_only, redact = ["$"], timeout = "10s")]
async fn slow(
    ctx: &ToolContext,
    /// Milliseconds.
    ms: u64,
) -> Result<u64, ToolError> {
    let _ = ctx;
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(ms)
}

/// Says much.
#[tool(name = "stages__long", effect = read_only, redact = ["$"], max_result_bytes = 512)]
fn long() -> Result<String, ToolError> {
    Ok("x".repeat(4000))
}

/// Fails with a text of the author's.
#[tool(name = "stages__fail", effect = read_only, redact = ["$"])]
fn fail(
    /// How long the text is.
    length: usize,
) -> Result<bool, ToolError> {
    Err(ToolError::code("c".repeat(length)).with_safe(format!("bell\u{7} {}", "m".repeat(length))))
}

struct Echo;

#[async_trait]
impl DynamicHandler for Echo {
    async fn call(&self, arguments: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(json!({ "text": arguments["text"] }))
    }
}

const TOOLS: &str = r#"
    allowed_tools = ["stages__find", "stages__change", "stages__list", "stages__pick", "stages__even", "stages__slow",
        "stages__long", "stages__fail", "rig__cursor", "stages__bare", "stages__each", "stages__rejects"]
"#;

fn catalog() -> ToolCatalog {
    let schema = || json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let dynamic = |name: &str| DynamicTool::new(name, "Echoes.", schema(), ToolEffect::ReadOnly, Arc::new(Echo));
    let without = |name: &str| {
        DynamicTool::without_schema(name, "Echoes.", ToolEffect::StateChange, Arc::new(Echo)).redact(["text"])
    };
    ToolCatalog::builder()
        .collect()
        .namespaces(["stages"])
        .tool::<Cursor>()
        .dynamic(dynamic("stages__bare"))
        .dynamic(without("stages__each").approve_each())
        .dynamic(without("stages__rejects"))
        .build()
        .expect("a catalog")
}

struct Rig {
    runner: ToolRunner,
    clock: Arc<ManualClock>,
    heard: EventLog,
}

fn rig(rules: &str, approvals: bool) -> Rig {
    rig_over(rules, approvals, MemoryStore::new())
}

fn rig_over(rules: &str, approvals: bool, store: MemoryStore) -> Rig {
    let policy = ToolPolicy::from_toml(&format!("{TOOLS}\n{rules}")).expect("a policy");
    // The stores have the machine's time, and what waits expires by theirs.
    let clock = Arc::new(ManualClock::at(<dyn Clock>::system().now()));
    let builder = ToolRunner::builder(catalog(), policy).approvals(approvals).store(store).clock(Arc::clone(&clock));
    Rig { runner: builder.build().expect("a runner"), clock, heard: EventLog::default() }
}

impl Rig {
    fn options(&self) -> RunOptions {
        RunOptions::new().principal("ada").tenant("acme").events(self.heard.sink())
    }

    fn run(&self) -> Run {
        self.runner.run(self.options())
    }
}

async fn exec(run: &Run, id: &str, name: &str, arguments: &str) -> (Outcome, String) {
    let result = run.exec(ToolCall::text(id, name, arguments)).await;
    (result.outcome(), result.to_model())
}

/// One call under some rules, with and without somebody who approves.
#[track_caller]
fn check(rules: &str, approvals: bool, name: &str, arguments: &str, expected: Outcome) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let run = rig(rules, approvals).run();
    let (outcome, text) = runtime.expect("a runtime").block_on(exec(&run, "c", name, arguments));
    assert_eq!(outcome, expected, "{name} {arguments} under {rules}: {text}");
    text
}

#[test]
fn arguments_pass_every_rule_of_their_tool() {
    let cases = [
        ("stages__find", r#"{"task_id":"  t1 "}"#, Outcome::Ok),
        ("stages__find", r#"{"task_id":": "}"#, Outcome::ValidationError),
        ("stages__find", r#"{"task_id":"<id>"}"#, Outcome::ValidationError),
        ("stages__change", r#"{"done":true}"#, Outcome::Ok),
        ("stages__change", "{}", Outcome::ValidationError),
        ("stages__change", r#"{"title":null}"#, Outcome::ValidationError),
        ("stages__pick", r#"{"item":"item-1"}"#, Outcome::ValidationError),
        ("stages__even", r#"{"n":2}"#, Outcome::Ok),
        ("stages__even", r#"{"n":3}"#, Outcome::ValidationError),
        ("stages__even", r#"{"n":-2}"#, Outcome::ValidationError),
    ];
    for (name, arguments, expected) in cases {
        check("", false, name, arguments, expected);
    }
    assert_eq!(check("", false, "stages__find", r#"{"task_id":"  t1 "}"#, Outcome::Ok), "t1", "ids are trimmed");
}

#[test]
fn the_policys_limits_are_the_limits() {
    let deep = format!(r#"{{"title":"t","x":{}{}}}"#, "[".repeat(6), "]".repeat(6));
    let long = format!(r#"{{"task_id":"{}"}}"#, "t".repeat(100));
    let cases = [
        ("limits.argument_depth = 4", "stages__change", deep.as_str(), Outcome::LimitExceeded),
        ("", "stages__change", deep.as_str(), Outcome::ValidationError),
        ("limits.argument_bytes = 64", "stages__find", long.as_str(), Outcome::LimitExceeded),
        ("budgets.tools.stages__find.max_argument_bytes = 64", "stages__find", long.as_str(), Outcome::LimitExceeded),
        ("budgets.default.max_runtime_ms = 50", "stages__slow", r#"{"ms":100}"#, Outcome::Timeout),
        ("budgets.run.time_ms = 50", "stages__slow", r#"{"ms":100}"#, Outcome::Timeout),
        ("budgets.default.max_runtime_ms = 60000", "stages__slow", r#"{"ms":20000}"#, Outcome::Timeout),
        ("", "stages__slow", r#"{"ms":100}"#, Outcome::Ok),
    ];
    for (rules, name, arguments, expected) in cases {
        check(rules, false, name, arguments, expected);
    }
    assert!(check("", false, "stages__long", "{}", Outcome::Ok).len() <= 512, "the tool's own limit");
    let smaller = "budgets.default.max_result_bytes = 128";
    assert!(check(smaller, false, "stages__long", "{}", Outcome::Ok).len() <= 128, "the policy's smaller limit");
    let larger = "budgets.default.max_result_bytes = 3000";
    assert!(check(larger, false, "stages__long", "{}", Outcome::Ok).len() <= 512, "the tool's smaller limit");
}

#[tokio::test]
async fn call_ids_are_bounded() {
    let run = rig("limits.call_id_bytes = 16", false).run();
    assert_eq!(exec(&run, &"i".repeat(16), "stages__list", "{}").await.0, Outcome::Ok);
    assert_eq!(exec(&run, &"i".repeat(17), "stages__list", "{}").await.0, Outcome::LimitExceeded);
    // One that is too long for a record is not remembered either: each use is refused for its length.
    for _ in 0..2 {
        let long = run.exec(ToolCall::text("i".repeat(1000), "stages__list", "{}")).await;
        assert_eq!((long.outcome(), long.call_id().as_str().len()), (Outcome::LimitExceeded, 1000));
    }
}

#[test]
fn calls_that_require_approval_are_denied_without_approvers() {
    let argument = r#"
        [[tools.stages__find.arguments]]
        pointer = "/task_id"
        equals = "t1"
    "#;
    let asks = format!("{argument}then = \"require_approval\"");
    let denies = format!("{argument}then = \"deny\"");
    let repairs = "repair = { allowed = [\"fenced_json\"], require_approval = true }";
    let fenced = "```json\n{\"task_id\":\"t1\"}\n```";
    let t1 = r#"{"task_id":"t1"}"#;
    let cases = [
        (r#"require_approval_for_tools = ["stages__find"]"#, "stages__find", t1, Outcome::ApprovalRequired),
        (r#"require_approval_for_effects = ["read_only"]"#, "stages__find", t1, Outcome::ApprovalRequired),
        (r#"tags.write = "require_approval""#, "stages__change", r#"{"done":true}"#, Outcome::ApprovalRequired),
        (asks.as_str(), "stages__find", t1, Outcome::ApprovalRequired),
        (repairs, "stages__find", fenced, Outcome::ApprovalRequired),
        ("", "stages__each", "{}", Outcome::ApprovalRequired),
    ];
    for (rules, name, arguments, expected) in cases {
        check(rules, true, name, arguments, expected);
        check(rules, false, name, arguments, Outcome::PolicyDenied);
    }
    check(&denies, true, "stages__find", t1, Outcome::PolicyDenied);
    check(&denies, true, "stages__find", r#"{"task_id":"t2"}"#, Outcome::Ok);
    check("", true, "stages__rejects", "{}", Outcome::PolicyDenied);
    check(repairs, false, "stages__find", t1, Outcome::Ok);
}

#[test]
fn only_a_named_repairer_repairs_and_only_once() {
    let fenced = "```json\n{\"task_id\":\"t1\"}\n```";
    let allowing = |name: &str| format!("repair = {{ allowed = [\"{name}\"], require_approval = false }}");
    check(&allowing("fenced_json"), false, "stages__find", fenced, Outcome::Ok);
    check(&allowing("single_quotes"), false, "stages__find", fenced, Outcome::InvalidJson);
    check("", false, "stages__find", fenced, Outcome::InvalidJson);
}

#[test]
fn a_tool_without_an_allowlist_never_runs() {
    check("", false, "stages__bare", r#"{"text":"t"}"#, Outcome::RedactionFailed);
}

#[tokio::test]
async fn a_cancelled_run_starts_nothing() {
    let run = rig("", false).run();
    run.cancel();
    let result = run.exec(ToolCall::text("c", "stages__list", "{}")).await;
    assert_eq!((result.outcome(), result.executed()), (Outcome::Cancelled, false));
}

#[tokio::test]
async fn an_incomplete_call_does_not_hydrate() {
    let run = rig("", false).run();
    let cut = run.hydrate([ToolCall::text("c", "stages__list", "{}").incomplete()]).remove(0);
    assert_eq!(cut.hydrated.expect_err("it was cut").error_code, Outcome::IncompleteCall);
}

#[tokio::test]
async fn a_success_ends_a_series_of_failures() {
    let run = rig("", false).run();
    for (at, (arguments, ends)) in
        [("{}", false), ("{}", false), (r#"{"n":2}"#, false), ("{}", false), ("{}", false), ("{}", true)]
            .into_iter()
            .enumerate()
    {
        run.begin_turn();
        exec(&run, &at.to_string(), "stages__even", arguments).await;
        assert_eq!(run.should_end_turn(), ends, "turn {at}");
    }
}

#[tokio::test]
async fn an_authors_error_text_is_bounded_and_plain() {
    let run = rig("", false).run();
    let result = run.exec(ToolCall::text("c", "stages__fail", r#"{"length":100000}"#)).await;
    let error = result.error().expect("it failed");
    assert!(error.safe_message.len() < 3000 && error.safe_message.starts_with("bell "), "{}", error.safe_message.len());
    assert!(!error.safe_message.contains('\u{7}'));
    assert!(error.tool_code.as_ref().is_some_and(|code| code.len() < 200));
}

#[tokio::test]
async fn ids_are_evidence_from_results_answers_and_the_user() {
    let pick = r#"{"item":"item-1"}"#;
    let run = rig("", false).run();
    assert_eq!(exec(&run, "1", "stages__pick", pick).await.0, Outcome::ValidationError);
    assert_eq!(exec(&run, "2", "stages__list", "{}").await.0, Outcome::Ok);
    assert_eq!(exec(&run, "3", "stages__pick", pick).await.0, Outcome::Ok);

    let run = rig("", false).run();
    run.add_user_text("Take item-1.");
    assert_eq!(exec(&run, "1", "stages__pick", pick).await.0, Outcome::Ok);

    let run = rig(r#"require_approval_for_tools = ["stages__list"]"#, true).run();
    exec(&run, "1", "stages__list", "{}").await;
    let answer = ApprovalDecision::Respond(r#"["item-1"]"#.to_owned());
    assert!(run.resume_shown("1", answer, &grace()).await.expect("it waits").is_ok());
    assert_eq!(exec(&run, "2", "stages__pick", pick).await.0, Outcome::Ok);

    let run = rig("", true).run();
    exec(&run, "1", "rig__cursor", r#"{"file":"a.rs"}"#).await;
    assert!(run.client_result("1", "17").await.expect("it waits").is_ok());
    assert_eq!(exec(&run, "2", "stages__pick", r#"{"item":"17"}"#).await.0, Outcome::Ok);
}

#[tokio::test]
async fn a_suspension_is_finished_by_its_own_kind_of_answer_and_in_time() {
    let rig = rig(r#"require_approval_for_tools = ["stages__list"]"#, true);
    let run = rig.run();
    exec(&run, "person", "stages__list", "{}").await;
    exec(&run, "client", "rig__cursor", r#"{"file":"a.rs"}"#).await;
    assert!(run.client_result("person", "[]").await.is_err(), "a client does not answer for a person");
    assert!(
        run.resume_shown("client", ApprovalDecision::Approve, &grace()).await.is_err(),
        "a person does not answer for a client"
    );
    rig.clock.advance(Duration::from_hours(100 * 24));
    let late = run.resume_shown("person", ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!((late.outcome(), late.executed()), (Outcome::ApprovalExpired, false));
    assert_eq!(run.client_result("client", "1").await.expect("it waits").outcome(), Outcome::ApprovalExpired);
}

/// A decider for ada's calls.
fn grace() -> Decider {
    Decider::new("grace").tenant("acme")
}

/// An approval is bound to these parts: with another definition, principal, tenant or policy, the call no longer fits.
#[tokio::test]
async fn an_approval_fits_its_definition_people_and_policy_only() {
    let asks = r#"require_approval_for_tools = ["stages__find"]"#;
    let other_rule = format!("{asks}\nparallel = 3");
    let waits = |rules, store: &MemoryStore| {
        let rig = rig_over(rules, true, store.clone());
        rig.runner.run(rig.options().run_id("r"))
    };
    for (rules, options, expected) in [
        (asks, RunOptions::new().principal("ada").tenant("acme"), true),
        (asks, RunOptions::new().principal("eve").tenant("acme"), false),
        (asks, RunOptions::new().principal("ada").tenant("other"), false),
        (asks, RunOptions::new().principal("ada"), false),
        (other_rule.as_str(), RunOptions::new().principal("ada").tenant("acme"), false),
    ] {
        let store = MemoryStore::new();
        exec(&waits(asks, &store), "c", "stages__find", r#"{"task_id":"t1"}"#).await;
        let later = rig_over(rules, true, store.clone()).runner.run(options.run_id("r"));
        let fits =
            later.resume_shown("c", ApprovalDecision::Approve, &grace()).await.is_ok_and(|result| result.is_ok());
        assert_eq!(fits, expected, "{rules} {:?}", later.id());
    }
}

#[tokio::test]
async fn a_restored_run_remembers() {
    let rules =
        "budgets.run.calls = 3\n[labels.seen]\nfrom_tools = [\"stages__list\"]\ndeny_effects = [\"state_change\"]";
    let first = rig(rules, true);
    let run = first.run();
    exec(&run, "1", "stages__list", "{}").await;
    let snapshot = run.snapshot().await.expect("a snapshot");
    drop(run);

    let second = rig(rules, true);
    let other = second.runner.restore(snapshot.clone(), RunOptions::new().principal("ada").tenant("other")).await;
    assert_eq!(other.expect_err("another tenant").code(), "other_principal");
    let run = second.runner.restore(snapshot, second.options().label("new")).await.expect("restored");
    assert_eq!(exec(&run, "1", "stages__list", "{}").await.0, Outcome::PolicyDenied, "the call id was used");
    assert_eq!(exec(&run, "2", "stages__change", r#"{"done":true}"#).await.0, Outcome::PolicyDenied, "the label");
    assert_eq!(exec(&run, "3", "stages__pick", r#"{"item":"item-1"}"#).await.0, Outcome::Ok, "the evidence");
    assert_eq!(exec(&run, "4", "stages__even", r#"{"n":2}"#).await.0, Outcome::Ok);
    assert_eq!(exec(&run, "5", "stages__even", r#"{"n":4}"#).await.0, Outcome::BudgetExceeded, "what was spent");
}
