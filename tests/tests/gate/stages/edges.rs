//! Checks that another check repeats: each row is made so that only the first one notices.

use std::sync::{Arc, Mutex};
use tests::Shown as _;

use async_trait::async_trait;
use serde_json::{Value, json};
use tests::grace;
use tool_runtime::call::Violation;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionRequest};
use tool_runtime::registration::DynamicTool;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::MemoryStore;
use tool_runtime::wire::Usage;
use tool_runtime::{
    Connection, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy,
    ToolRunner, capability, tool,
};

use crate::stages::{Echo, check, exec, rig, rig_over};

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Answer {
    #[schemars(length(max = 3))]
    code: String,
}

/// Answers with a code that is longer than it may be.
#[tool(name = "edges__long_code", effect = read_only, redact = ["code"])]
fn long_code() -> Result<Answer, ToolError> {
    Ok(Answer { code: "four".to_owned() })
}

/// Remembers how its call can be stopped, and hangs.
#[tool(name = "edges__hang", effect = read_only, redact = ["$"], timeout = "1s")]
async fn hang(ctx: &ToolContext) -> Result<bool, ToolError> {
    *TOKEN.lock().map_err(|_| ToolError::code("poisoned"))? = Some(Box::new({
        let token = ctx.cancellation().clone();
        move || token.is_cancelled()
    }));
    std::future::pending().await
}

static TOKEN: Mutex<Option<Box<dyn Fn() -> bool + Send>>> = Mutex::new(None);

/// Moves a part somewhere else.
#[tool(name = "edges__move", effect = read_only, redact = ["$"], validate = elsewhere(from, *count, to))]
fn shift(
    /// From where.
    from: String,
    /// Where to.
    #[serde(rename = "target")]
    to: String,
    /// How many.
    count: u32,
) -> Result<u32, ToolError> {
    drop((from, to));
    Ok(count)
}

/// Takes two arguments by reference and one by value, and misspells one.
fn elsewhere(from: &str, count: u32, to: &str) -> Result<(), Violation> {
    match count {
        0 => Err(Violation::of("count", "more than 0")),
        _ if from == to => Err(Violation::of("target", "another place")),
        13 => Err(Violation::of("cuont", "another number")),
        14 => Err(Violation::new("count", "semantic", "another number")),
        _ => Ok(()),
    }
}

/// Someone's calendar.
#[capability(effect = read_only, kind = "calendar")]
trait Calendar {
    /// When the next entry begins.
    fn next(&self) -> i64;
}

/// Someone's mail.
#[capability(effect = read_only, kind = "mail")]
trait Mail {
    /// How many letters there are.
    fn count(&self) -> i64;
}

struct Both;

impl Calendar for Both {
    fn next(&self) -> i64 {
        1
    }
}

impl Mail for Both {
    fn count(&self) -> i64 {
        2
    }
}

/// Reads a calendar.
#[tool(name = "edges__next", effect = read_only, redact = ["$"])]
fn next(calendar: &Connection<dyn Calendar>) -> Result<i64, ToolError> {
    Ok(calendar.next())
}

/// Counts letters.
#[tool(name = "edges__count", effect = read_only, redact = ["$"])]
fn count(mail: &Connection<dyn Mail>) -> Result<i64, ToolError> {
    Ok(mail.count())
}

/// Answers every request with somebody's mail.
struct MailOnly;

#[async_trait]
impl ConnectionBroker for MailOnly {
    async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        Ok(ConnectionHandle::new::<dyn Mail>(Arc::new(Both)))
    }
}

#[tokio::test]
async fn a_hook_points_at_arguments_that_exist() {
    let run = run_of("edges__move", "", RunOptions::new());
    for (from, count, pointer) in
        [("a", 1, None), ("a", 0, Some("/count")), ("b", 1, Some("/target")), ("a", 13, Some("")), ("a", 14, Some(""))]
    {
        let arguments = json!({"from": from, "target": "b", "count": count}).to_string();
        let result = run.exec(ToolCall::text(&*format!("{from}{count}"), "edges__move", arguments)).await;
        let pointed = result.error().map(|error| error.errors[0].pointer.as_str());
        assert_eq!(pointed, pointer, "{from} {count}");
    }
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    title: String,
    id: String,
}

/// Finds something; only the model sees its id.
#[tool(name = "edges__inner", effect = read_only, redact = ["title"], model = ["id"])]
fn inner() -> Result<Found, ToolError> {
    Ok(Found { title: "A title".to_owned(), id: "inner-1".to_owned() })
}

/// Takes what was found.
#[tool(name = "edges__take", effect = read_only, redact = ["$"])]
fn take(
    /// Which.
    #[arg(evidence = "edges__inner")]
    item: String,
) -> Result<String, ToolError> {
    Ok(item)
}

#[tokio::test]
async fn results_that_only_the_model_saw_are_evidence() {
    let run =
        run_of("edges__take", "principals.ada.allowed_tools = ['edges__inner']", RunOptions::new().principal("ada"));
    let item = r#"{"item":"inner-1"}"#;
    assert_eq!(exec(&run, "1", "edges__take", item).await.0, Outcome::ValidationError);
    assert_eq!(exec(&run, "2", "edges__inner", "{}").await.0, Outcome::Ok);
    assert_eq!(exec(&run, "3", "edges__take", item).await.0, Outcome::Ok);
}

/// Says how many seconds it has.
#[tool(name = "edges__deadline", effect = read_only, redact = ["$"], timeout = "90s")]
fn deadline(ctx: &ToolContext) -> Result<Option<u64>, ToolError> {
    Ok(ctx.deadline().map(|deadline| deadline.saturating_duration_since(tokio::time::Instant::now()).as_secs()))
}

#[tokio::test(start_paused = true)]
async fn a_tool_knows_how_long_it_has() {
    for (rules, seconds) in
        [("", "90"), ("budgets.default.max_runtime_ms = 30000", "30"), ("budgets.run.time_ms = 20000", "20")]
    {
        let run = run_of("edges__deadline", rules, RunOptions::new());
        assert_eq!(exec(&run, "c", "edges__deadline", "{}").await, (Outcome::Ok, seconds.to_owned()), "{rules}");
    }
}

fn run_of(name: &str, rules: &str, options: RunOptions) -> Run {
    let catalog = ToolCatalog::builder().collect().namespaces(["edges"]).build().expect("a catalog");
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = [\"{name}\"]\n{rules}")).expect("a policy");
    ToolRunner::builder(catalog, policy).broker(MailOnly).build().expect("a runner").run(options)
}

#[tokio::test]
async fn a_connection_of_another_type_fails_the_call() {
    for (kind, name, expected) in
        [("calendar", "edges__next", Outcome::ConnectionFailed), ("mail", "edges__count", Outcome::Ok)]
    {
        let run = run_of(name, "", RunOptions::new().connection(kind, "one".into()));
        assert_eq!(exec(&run, "c", name, "{}").await.0, expected, "{kind}");
    }
}

#[tokio::test]
async fn output_over_the_bounds_of_its_schema_is_invalid() {
    let run = run_of("edges__long_code", "", RunOptions::new());
    assert_eq!(exec(&run, "c", "edges__long_code", "{}").await.0, Outcome::OutputInvalid);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_tells_the_tool() {
    let run = run_of("edges__hang", "", RunOptions::new());
    assert_eq!(exec(&run, "c", "edges__hang", "{}").await.0, Outcome::Timeout);
    let told = TOKEN.lock().expect("no poison").take().expect("the tool began");
    assert!(told(), "the token of the call was fired");
}

#[test]
fn policy_comes_before_the_arguments_and_limits_before_repair() {
    let asks = r#"require_approval_for_tools = ["stages__find"]"#;
    check(asks, false, "stages__find", "not JSON", Outcome::PolicyDenied);
    let repairs = "limits.argument_bytes = 64\nrepair = { allowed = [\"fenced_json\"], require_approval = false }";
    let padded = format!("```json\n{{\"task_id\":\"t1\"}}\n{}```", " ".repeat(64));
    check(repairs, false, "stages__find", &padded, Outcome::LimitExceeded);
}

#[tokio::test]
async fn a_fully_spent_budget_is_exhausted() {
    let run = rig("budgets.run.cost = 1.0", false).run();
    run.account(Usage::default(), 0.5);
    assert!(run.exhausted().await.unwrap().is_none());
    run.account(Usage::default(), 0.5);
    assert!(run.exhausted().await.unwrap().is_some());
    assert_eq!(exec(&run, "c", "stages__list", "{}").await.0, Outcome::BudgetExceeded);

    let run = rig("budgets.run.reasoning_tokens = 10", false).run();
    let mut usage = Usage::new(1, 20);
    usage.reasoning_tokens = 5;
    run.account(usage, 0.0);
    assert!(run.exhausted().await.unwrap().is_none());
    run.account(usage, 0.0);
    assert_eq!(
        run.exhausted().await.unwrap().map(tool_runtime::policy::BudgetExceeded::key),
        Some("budgets.run.reasoning_tokens")
    );
    assert_eq!(run.summary().usage.reasoning_tokens, 10);
}

/// Without budgets, nothing is reserved, but the spent amounts count as soon as there are budgets.
#[tokio::test(start_paused = true)]
async fn a_run_without_budgets_spends_as_much_as_one_with() {
    let mut spent = Vec::new();
    for budget in ["", "budgets.run.calls = 100"] {
        let run = rig(budget, false).run();
        exec(&run, "ok", "stages__list", "{}").await;
        exec(&run, "failed", "stages__fail", r#"{"length":1}"#).await;
        exec(&run, "invalid", "stages__even", r#"{"n":3}"#).await;
        exec(&run, "ok", "stages__list", "{}").await;
        drop(run.exec(ToolCall::text("unpolled", "stages__list", "{}")));
        let slow = run.exec(ToolCall::text("cut", "stages__slow", r#"{"ms":5000}"#));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(20), slow).await.is_err());
        let saved = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("JSON");
        spent.push(saved["spent"].clone());
    }
    assert_eq!(spent[0], spent[1]);
    assert_eq!((&spent[0]["calls"], &spent[0]["bytes"]), (&json!(3), &json!(r#"["item-1"]"#.len())));
}

/// The one tool of a runner; calls of it may wait in the store while its definition changes.
fn later(description: &str, client: bool, store: &MemoryStore) -> Run {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let tool = DynamicTool::new("edges__echo", description, schema, ToolEffect::ReadOnly, Arc::new(Echo));
    let answer = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "signature": {"type": "string"}},
        "required": ["text", "signature"],
    });
    let tool = if client { tool.client(answer, ["text"]) } else { tool };
    let catalog = ToolCatalog::builder().dynamic(tool.redact(["text"])).build().expect("a catalog");
    let asks = if client { "" } else { "require_approval_for_tools = [\"edges__echo\"]" };
    let policy = ToolPolicy::from_toml(&format!("allowed_tools = [\"edges__echo\"]\n{asks}")).expect("a policy");
    let builder = ToolRunner::builder(catalog, policy).approvals(true).store(store.clone());
    builder.build().expect("a runner").run(RunOptions::new().run_id("r"))
}

#[tokio::test]
async fn a_changed_definition_voids_what_waits() {
    let respond = || ApprovalDecision::Respond(json!({"text": "t"}).to_string());
    let edited = || ApprovalDecision::ApproveEdited(json!({"text": "u"}).to_string());
    for decision in [|| ApprovalDecision::Approve, respond, edited] {
        for (description, fits) in [("Echoes.", true), ("Echoes, and more.", false)] {
            let store = MemoryStore::new();
            exec(&later("Echoes.", false, &store), "c", "edges__echo", r#"{"text":"t"}"#).await;
            let result = later(description, false, &store).resume_shown("c", decision(), &grace()).await;
            let right = result.is_ok_and(|result| result.is_ok());
            assert_eq!(right, fits, "{:?} {description}", decision());
        }
    }
    for (description, fits) in [("Echoes.", true), ("Echoes, and more.", false)] {
        let store = MemoryStore::new();
        exec(&later("Echoes.", true, &store), "c", "edges__echo", r#"{"text":"t"}"#).await;
        let answer = json!({"text": "t", "signature": "s"}).to_string();
        let result = later(description, true, &store).client_result("c", &answer).await;
        assert_eq!(result.is_ok_and(|result| result.is_ok()), fits, "{description}");
    }
}

#[tokio::test]
async fn a_clients_answer_is_checked_where_it_is_not_shown_too() {
    for (answer, expected) in [
        (json!({"text": "t", "signature": "s"}), Outcome::Ok),
        (json!({"text": "t"}), Outcome::ApprovalMismatch),
        (json!({"text": "t", "signature": 7}), Outcome::ApprovalMismatch),
    ] {
        let store = MemoryStore::new();
        let run = later("Echoes.", true, &store);
        exec(&run, "c", "edges__echo", r#"{"text":"t"}"#).await;
        let result = run.client_result("c", &answer.to_string()).await.expect("it waits");
        assert_eq!(result.outcome(), expected, "{answer}");
        let shown: Option<Value> = result.value().and_then(|value| serde_json::from_str(value.get()).ok());
        assert_eq!(shown.is_some(), result.is_ok());
    }
}

/// A run that finishes a call is no wider than the one that made it, and carries its labels.
#[tokio::test]
async fn a_waiting_call_is_not_finished_by_a_wider_run() {
    let rules = "require_approval_for_tools = [\"stages__find\"]\n[labels.tainted]\nfrom_run = true\ndeny_effects = [\"state_change\"]\n\
        [roles.clerk]\nallowed_tools = [\"stages__list\"]";
    let options = || RunOptions::new().run_id("r");
    let both = ["stages__find", "stages__change"];
    let narrow = || options().tools(both).label("tainted");
    for (later, fits) in [
        (options().tools(both), true),
        (options().tools(["stages__find"]), true),
        (options().tools(["stages__find", "stages__list"]), false),
        (options(), false),
        (options().tools(both).role("clerk"), false),
    ] {
        let store = MemoryStore::new();
        let first = rig_over(rules, true, store.clone()).runner.run(narrow());
        exec(&first, "c", "stages__find", r#"{"task_id":"t1"}"#).await;
        let run = rig_over(rules, true, store).runner.run(later);
        let result = run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert_eq!(result.is_ok(), fits, "{:?}", result.outcome());
        if fits && run.catalog().get("stages__change").is_some() {
            let changed = exec(&run, "d", "stages__change", r#"{"done":true}"#).await.0;
            assert_eq!(changed, Outcome::PolicyDenied, "the label of the call's run");
        }
    }
}
