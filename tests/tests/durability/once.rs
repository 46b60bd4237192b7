//! An effect with a key happens once: whichever tool or call id has the key, for every principal of the key's scope, in
//! every run of a store.

mod asked;
mod changed;
mod doors;
mod late;
mod purged;
mod shell;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tests::world::{EventLog, Processes, World};
use tool_runtime::call::{CallId, Decider};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{DocumentKind, Query, Store};
use tool_runtime::{
    Call, Cap, Capabilities, Event, Outcome, Reconciled, Run, RunOptions, ToolCall, ToolCatalog, ToolComponent,
    ToolContext, ToolEffect, ToolError, ToolExecResult, ToolRunner, ToolSpec, capability, definition, tool,
};
use tool_runtime_sql::{SqlOptions, SqlStore};

/// A bank, which knows what was paid.
#[capability(effect = external_side_effect)]
pub(crate) trait Ledgers {
    /// Whether a payment was paid back.
    fn paid_back(&self) -> bool;
}

struct Paid(AtomicBool);

impl Ledgers for Paid {
    fn paid_back(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Pays a payment back, once.
#[tool(name = "once__refund", effect = external_side_effect, redact = ["$"], once = "refund:{payment_id}")]
struct Refund {
    /// Which.
    payment_id: String,
    /// How much.
    #[arg(default = 7)]
    cents: u32,
    /// The purpose of the payment.
    note: Option<String>,
}

#[tool]
impl Refund {
    async fn run(self, world: &dyn World, _bank: &dyn Ledgers) -> Result<String, ToolError> {
        world.happen();
        world.door().pass().await;
        match self.note.as_deref() {
            Some("fail") => Err(ToolError::code("declined")),
            _ => Ok(format!("{} of {}", self.cents, self.payment_id)),
        }
    }

    async fn reconcile(self, _world: &dyn World, bank: &dyn Ledgers) -> Result<Reconciled<String>, ToolError> {
        Ok(if bank.paid_back() {
            Reconciled::TookEffect(format!("{} of {}", self.cents, self.payment_id))
        } else {
            Reconciled::Unknown
        })
    }
}

/// The same effect by another tool.
#[tool(name = "once__repay", effect = external_side_effect, redact = ["$"], once = "refund:{payment}", once_for = "1d")]
fn repay(
    world: &dyn World,
    /// Which.
    payment: String,
) -> Result<u32, ToolError> {
    drop(payment);
    Ok(world.happen())
}

/// Greets a person, once for each principal.
#[tool(name = "once__greet", effect = state_change, redact = ["$"], once = "greet:{who.name}", once_scope = principal)]
fn greet(
    world: &dyn World,
    /// Whom.
    who: Who,
) -> Result<String, ToolError> {
    world.happen();
    Ok(who.name)
}

/// A person.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Who {
    /// The name.
    name: String,
}

/// Reports, once in a run, for an hour.
#[tool(name = "once__report", effect = state_change, redact = ["$"], once = "report", once_scope = run, once_for = "1h")]
fn report(world: &dyn World) -> Result<u32, ToolError> {
    Ok(world.happen())
}

/// A payment whose bank refuses a second transfer.
#[tool(name = "once__send", effect = external_side_effect, idempotent, redact = ["$"], once = "send:{payment}")]
async fn send(
    world: &dyn World,
    /// Which.
    payment: String,
) -> Result<String, ToolError> {
    let times = world.happen();
    world.door().pass().await;
    if times == 1 { Ok(payment) } else { Err(ToolError::code("sent_before")) }
}

/// Looks a payment up.
#[tool(name = "once__look", effect = read_only, redact = ["$"])]
fn look(
    /// Which.
    payment_id: String,
) -> Result<String, ToolError> {
    Ok(format!("the secret of {payment_id}"))
}

/// The same refund without a key.
#[tool(name = "once__control", effect = external_side_effect, redact = ["$"])]
struct Control {
    /// Which.
    payment_id: String,
}

impl ToolComponent for Control {
    type Capabilities = (Cap<dyn World>,);
    type Output = String;

    async fn run(self, (world,): Self::Capabilities, _: &Call<Self>) -> Result<String, ToolError> {
        world.happen();
        world.door().pass().await;
        Ok(self.payment_id)
    }
}

struct Rig {
    shared: Processes,
    bank: Arc<Paid>,
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 0), bank: Arc::new(Paid(AtomicBool::new(false))) }
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities().with(Arc::clone(&self.bank) as Arc<dyn Ledgers>)
    }

    fn process_on(&self, store: Arc<dyn Store>) -> ToolRunner {
        let tools =
            "'once__refund', 'once__repay', 'once__greet', 'once__report', 'once__control', 'once__send', 'once__look'";
        self.shared.start(store, &format!("allowed_tools = [{tools}]"), self.capabilities())
    }

    fn run(&self, id: &str, principal: &str) -> Run {
        self.process_on(Arc::clone(&self.shared.store) as _).run(of(id, principal))
    }

    async fn call(&self, run: (&str, &str), tool: &str, id: &str) -> ToolExecResult {
        self.run(run.0, run.1).exec(call(tool, id)).await
    }

    async fn effects(&self) -> usize {
        self.shared.store.list(&Query::new(DocumentKind::Effect)).await.expect("it lists").len()
    }
}

fn of(id: &str, principal: &str) -> RunOptions {
    RunOptions::new().run_id(id).principal(principal).tenant("acme")
}

fn call(tool: &str, id: &str) -> ToolCall {
    let arguments = if tool == "once__repay" { r#"{"payment":"p-1"}"# } else { r#"{"payment_id":"p-1"}"# };
    ToolCall::text(id, tool, arguments)
}

fn code(result: &ToolExecResult) -> Option<&str> {
    result.error().and_then(|error| error.tool_code.as_deref())
}

/// The same refund with seven ids, over three runs, two principals and a killed process. Returns the number of effects.
async fn seven(rig: &Rig, tool: &str) -> u32 {
    let (first, second, third) = (("run-1", "ada"), ("run-2", "ada"), ("run-3", "bob"));
    std::mem::forget(rig.shared.stuck(rig.run(first.0, first.1).exec(call(tool, "c1"))).await);
    if tool == "once__control" {
        // A call without a key executes, and passes the door.
        rig.shared.open(9);
    }
    for (run, id) in [(first, "c2"), (second, "c1"), (third, "c1")] {
        let result = rig.call(run, tool, id).await;
        if rig.shared.effects() == 1 {
            assert_eq!((result.outcome(), code(&result)), (Outcome::Cancelled, Some("in_progress")));
        }
    }
    rig.bank.0.store(true, Ordering::Release);
    rig.shared.clock.advance(Duration::from_secs(31));
    rig.process_on(Arc::clone(&rig.shared.store) as _).sweep().await.expect("it takes over");
    for (run, id) in [(first, "c3"), (second, "c2"), (third, "c2")] {
        let result = rig.call(run, tool, id).await;
        if rig.shared.effects() == 1 {
            assert_eq!((result.outcome(), result.executed()), (Outcome::Ok, false), "{}", result.to_model());
            assert_eq!(result.earlier_call(), Some(("run-1", &CallId::new("c1"))));
        }
    }
    rig.shared.effects()
}

#[tokio::test]
async fn one_effect_for_seven_calls() {
    let rig = Rig::new();
    assert_eq!(seven(&rig, "once__refund").await, 1);
    let records = rig.shared.closed().await;
    assert_eq!(records.len(), 7, "each call has a record");
    assert!(records.iter().all(|record| record.effect_key.as_deref() == Some("refund:p-1")));
    // The control: without the key, the check fails.
    assert!(seven(&Rig::new(), "once__control").await > 1);
}

#[tokio::test]
async fn the_second_call_is_answered_with_the_first_result_and_says_so() {
    let rig = Rig::new();
    rig.shared.open(9);
    assert_eq!(rig.call(("run-1", "ada"), "once__refund", "c1").await.to_model(), "7 of p-1");
    let heard = EventLog::default();
    let run = rig.process_on(Arc::clone(&rig.shared.store) as _).run(of("run-2", "bob").events(heard.sink()));
    // Arguments that the key does not name may differ.
    let other = ToolCall::text("c1", "once__refund", r#"{"payment_id":"p-1","cents":8,"note":"again"}"#);
    let second = run.exec(other).await;
    assert_eq!(
        second.to_model(),
        "7 of p-1\n\nThe tool did not run again: an earlier call already caused this effect; this is its result."
    );
    let told = heard.take().into_iter().find_map(|event| match event {
        Event::ToolCallResult { earlier_call, .. } => earlier_call,
        _ => None,
    });
    assert_eq!(told, Some(CallId::new("c1")));
    let read: ToolExecResult = serde_json::from_str(&serde_json::to_string(&second).expect("JSON")).expect("a result");
    assert_eq!(read.earlier_call(), Some(("run-1", &CallId::new("c1"))));
    // Another tool with the key has another output, so it gets no result, and does not run.
    let repaid = rig.call(("run-3", "ada"), "once__repay", "c1").await;
    assert_eq!((repaid.outcome(), repaid.executed(), rig.shared.effects()), (Outcome::Cancelled, false, 1));
    assert!(repaid.to_model().contains("another tool already caused this effect"), "{}", repaid.to_model());
    // Another payment, and another tenant, have other effects.
    let other = ToolCall::text("c2", "once__refund", r#"{"payment_id":"p-2"}"#);
    assert!(rig.run("run-1", "ada").exec(other).await.executed());
    let elsewhere = rig.process_on(Arc::clone(&rig.shared.store) as _).run(of("run-9", "ada").tenant("other"));
    assert!(elsewhere.exec(call("once__refund", "c1")).await.executed());
    assert_eq!(rig.shared.effects(), 3);
}

#[tokio::test]
async fn what_failed_before_its_effect_may_begin_again() {
    let rig = Rig::new();
    rig.shared.open(9);
    let failing = ToolCall::text("c1", "once__refund", r#"{"payment_id":"p-1","note":"fail"}"#);
    assert_eq!(rig.run("run-1", "ada").exec(failing).await.outcome(), Outcome::ExecutionError);
    assert_eq!(rig.effects().await, 0);
    assert_eq!(rig.call(("run-2", "ada"), "once__refund", "c1").await.outcome(), Outcome::Ok);
    assert_eq!((rig.effects().await, rig.shared.effects()), (1, 2));
}

#[tokio::test]
async fn an_unknown_outcome_waits_and_reconcile_settles_it() {
    let rig = Rig::new();
    let run = rig.run("run-1", "ada");
    let running = rig.shared.stuck(run.exec(call("once__refund", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    // The bank does not know yet, so a person decides, in another run of another principal, too.
    let asked = rig.call(("run-2", "bob"), "once__refund", "c1").await;
    assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
    let waiting = rig.run("run-2", "bob").pending(&CallId::new("c1")).await.expect("a store").expect("it waits");
    let summary = waiting.summary.as_deref().expect("a sentence");
    assert!(summary.starts_with("A call with the same effect key has an unknown outcome: call “c1” of"), "{summary}");
    rig.bank.0.store(true, Ordering::Release);
    let known = rig.call(("run-3", "bob"), "once__refund", "c1").await;
    assert_eq!((known.outcome(), known.executed()), (Outcome::Ok, false), "{}", known.to_model());
    // An approval after that does not repeat the effect.
    let grace = Decider::new("grace").tenant("acme");
    let late = rig.run("run-2", "bob").resume(&waiting.question(), ApprovalDecision::Approve, &grace).await;
    let late = late.expect("it is decided");
    assert_eq!((late.outcome(), late.executed(), rig.shared.effects()), (Outcome::Ok, false, 1));
    assert_eq!(late.earlier_call(), Some(("run-1", &CallId::new("c1"))));
}

#[tokio::test]
async fn scopes_and_times_to_keep() {
    let rig = Rig::new();
    let greet = |id: &str| ToolCall::text(id, "once__greet", r#"{"who":{"name":"Eve"}}"#);
    assert!(rig.run("run-1", "ada").exec(greet("c1")).await.executed());
    assert!(!rig.run("run-2", "ada").exec(greet("c1")).await.executed());
    assert!(rig.run("run-3", "bob").exec(greet("c1")).await.executed());
    let report = |id: &str| ToolCall::text(id, "once__report", "{}");
    assert!(rig.run("run-1", "ada").exec(report("d1")).await.executed());
    assert!(!rig.run("run-1", "ada").exec(report("d2")).await.executed());
    assert!(rig.run("run-2", "ada").exec(report("d1")).await.executed());
    rig.shared.clock.advance(Duration::from_hours(1));
    assert!(rig.run("run-1", "ada").exec(report("d3")).await.executed());
    assert!(!rig.run("run-1", "ada").exec(report("d4")).await.executed());
    // A week after its time, the document goes.
    assert_eq!(rig.effects().await, 4);
    rig.shared.clock.advance(Duration::from_hours(8 * 24));
    (&*rig.shared.store as &dyn Store).sweep().await.expect("it sweeps");
    assert_eq!(rig.effects().await, 2, "keys without a time stay");
}

/// A time to keep is compared with the store's clock. One that jumps forwards by the time lets the effect happen again;
/// one that jumped back keeps the result for longer.
#[tokio::test]
async fn a_clock_that_jumps_moves_the_time_to_keep() {
    let repay = async |rig: &Rig, id: &str| rig.call(("run-1", "ada"), "once__repay", id).await.executed();
    let sweeps = async |rig: &Rig| (&*rig.shared.store as &dyn Store).sweep().await.expect("it sweeps");
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let day = Duration::from_hours(24);
    // Forwards and back: between the two, a second effect happens, and its result is kept until a day after the jump.
    let rig = Rig::new();
    assert!(repay(&rig, "c1").await);
    rig.shared.clock.set(start + 2 * day);
    assert!(repay(&rig, "c2").await);
    rig.shared.clock.set(start);
    sweeps(&rig).await;
    assert!(!repay(&rig, "c3").await);
    rig.shared.clock.set(start + 2 * day);
    assert!(!repay(&rig, "c4").await);
    rig.shared.clock.set(start + 3 * day);
    assert!(repay(&rig, "c5").await);
    // A jump between two calls changes the result only if it is longer than the time and a week: then a sweep deletes
    // the key.
    for (jump, is_again) in [(8, false), (9, true)] {
        let rig = Rig::new();
        assert!(repay(&rig, "c1").await);
        rig.shared.clock.set(start + jump * day - Duration::from_secs(1));
        sweeps(&rig).await;
        rig.shared.clock.set(start);
        assert_eq!(repay(&rig, "c2").await, is_again, "{jump} days");
    }
    // A clock that was behind when the effect happened shortens the time.
    let rig = Rig::new();
    rig.shared.clock.set(start - day / 2);
    assert!(repay(&rig, "c1").await);
    rig.shared.clock.set(start + day / 2);
    assert!(repay(&rig, "c2").await, "half a day early");
}

/// Two processes on one file of SQLite.
#[tokio::test]
async fn another_process_on_a_database_has_the_same_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("once.db");
    let open = || async { Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store")) };
    let rig = Rig::new();
    let (one, two) = (open().await, open().await);
    let run = rig.process_on(Arc::clone(&one) as _).run(of("run-1", "ada"));
    let running = rig.shared.stuck(run.exec(call("once__refund", "c1"))).await;
    let there = |id: &str| rig.process_on(Arc::clone(&two) as _).run(of(id, "bob"));
    assert_eq!(code(&there("run-2").exec(call("once__refund", "c1")).await), Some("in_progress"));
    run.cancel();
    running.await.expect("it ends");
    assert_eq!(there("run-3").exec(call("once__refund", "c1")).await.outcome(), Outcome::ApprovalRequired);
    rig.bank.0.store(true, Ordering::Release);
    let known = there("run-4").exec(call("once__refund", "c1")).await;
    assert_eq!((known.outcome(), known.executed(), rig.shared.effects()), (Outcome::Ok, false, 1));
    let had = there("run-5").exec(call("once__refund", "c1")).await;
    assert_eq!((had.to_model(), had.earlier_call()), (known.to_model(), known.earlier_call()));
    // Twins, too.
    let run = rig.process_on(Arc::clone(&one) as _).run(of("run-6", "ada"));
    let running = rig.shared.stuck(run.exec(call("once__control", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    let twin = rig.process_on(two).run(of("run-7", "ada")).exec(call("once__control", "c1")).await;
    assert_eq!((twin.outcome(), rig.shared.effects()), (Outcome::ApprovalRequired, 2));
}

struct Nothing;

#[async_trait]
impl DynamicHandler for Nothing {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

#[test]
fn a_catalog_refuses_a_key_that_not_every_call_has() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"}, "secret": {"type": "string"}, "may": {"type": "string"},
            "null": {"type": ["string", "null"]}, "filled": {"type": "string", "default": "x"},
            "of": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        },
        "required": ["id", "secret", "null", "of"],
    });
    let build = |key: &str| {
        let handler = Arc::new(Nothing);
        let effect = ToolEffect::StateChange;
        let tool = DynamicTool::new("t__t", "Does.", schema.clone(), effect, handler);
        let tool = tool.redact(["$"]).sensitive("secret").once(key);
        ToolCatalog::builder().dynamic(tool).build().map(drop).map_err(|error| error.to_string())
    };
    let scoped = |tool: fn(DynamicTool) -> DynamicTool| {
        let tool = tool(DynamicTool::new("t__t", "Does.", schema.clone(), ToolEffect::StateChange, Arc::new(Nothing)));
        let catalog = ToolCatalog::builder().dynamic(tool.redact(["$"])).build().expect("a catalog");
        let spec = catalog.specs().next().expect("a tool").clone();
        spec.once().map(|(_, scope, keep)| (scope, keep))
    };
    assert_eq!(scoped(|tool| tool.once("x:{id}")), Some(("tenant", None)));
    let hour = Duration::from_hours(1);
    assert_eq!(scoped(|tool| tool.once_for(Duration::from_hours(1)).once_per_run("x")), Some(("run", Some(hour))));
    let second = Duration::from_secs(1);
    assert_eq!(scoped(|tool| tool.once_per_principal("x").once_for(Duration::ZERO)), Some(("principal", Some(second))));
    for key in ["x:{id}", "x:{of.id}:{filled}", "x"] {
        assert_eq!(build(key), Ok(()), "{key}");
    }
    for (key, why) in [
        ("x:{it}", "`once` names the argument `it`, which does not exist; did you mean `id`?"),
        ("x:{of.ID}", "`once` names the argument `of.ID`, which does not exist; did you mean `of.id`?"),
        ("x:{of.name}", "`once` names the argument `of.name`, which does not exist"),
        ("x:{secret}", "`once` names `secret`, which is sensitive"),
        ("x:{may}", "`once` names `may`, which a call may leave out"),
        ("x:{null}", "`once` names `null`, which a call may leave out or set to `null`"),
        ("y:{null}", "write its type without `Option`"),
        ("x[:{id}]", "`once` has an optional part"),
        ("x:{id", "`once` has a `{` that is never closed"),
        (" ", "`once` is empty"),
        ("id", "`once` is the same for every call, so a call with another `id` would get the first result"),
        ("refund:id", "write `{id}` for its value"),
    ] {
        let error = build(key).expect_err(key);
        assert!(error.contains(why), "{key}: {error}");
    }
}

#[test]
fn the_key_is_part_of_the_definition() {
    let spec: ToolSpec = definition!(Refund).expect("a definition");
    assert_eq!(spec.once(), Some(("refund:{payment_id}", "tenant", None)));
    let kept = definition!(report).expect("a definition");
    assert_eq!(kept.once(), Some(("report", "run", Some(Duration::from_hours(1)))));
    let shown = serde_json::to_value(&spec).expect("JSON");
    assert_eq!(shown["once"], serde_json::json!({"key": "refund:{payment_id}", "scope": "tenant"}));
    let report = serde_json::to_value(definition!(report).expect("a definition")).expect("JSON");
    assert_eq!(report["once"], serde_json::json!({"key": "report", "scope": "run", "for": 3600}));
}
