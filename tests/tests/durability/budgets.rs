//! Budgets that runs share: limits of a principal and of a tenant over all processes of one store.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tests::Shown as _;

use serde_json::Value;
use tests::world::{Door, Happened, HookAction, HookedStore, Processes, World};
use tool_runtime::agent::{Agent, StopReason, TurnOutcome};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{DocumentKind, Query, Store, StoreError};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::wire::Usage;
use tool_runtime::{Outcome, Run, RunOptions, ToolCall, ToolError, ToolExecResult, ToolRunner, capability, tool};

/// A read-only view of the world.
#[capability(effect = read_only)]
pub(crate) trait Window {
    /// Counts a reader, and returns the door through which slow reading ends.
    fn look(&self) -> Door;
}

/// Reads that many letters, once the door is open.
#[tool(name = "budgets__read", effect = read_only, redact = ["$"])]
async fn read(
    window: &dyn Window,
    /// How many.
    letters: u32,
) -> Result<String, ToolError> {
    window.look().pass().await;
    Ok("x".repeat(letters as usize))
}

impl Window for Happened {
    fn look(&self) -> Door {
        self.happen();
        self.door()
    }
}

/// Several processes over one store, in one world.
struct Rig(Processes);

impl Deref for Rig {
    type Target = Processes;

    fn deref(&self) -> &Processes {
        &self.0
    }
}

const ALL: &str = "allowed_tools = ['budgets__read', 'world__write', 'world__again']\n";

impl Rig {
    /// With a door through which this many calls go.
    fn new(open: usize) -> Self {
        Self(Processes::at("2026-01-01T12:30:00Z", open))
    }

    fn process_over(&self, store: Arc<dyn Store>, rules: &str) -> ToolRunner {
        let world = self.capabilities().with(Arc::clone(&self.world) as Arc<dyn Window>);
        self.start(store, &format!("{ALL}{rules}"), world)
    }

    fn process(&self, rules: &str) -> ToolRunner {
        self.process_over(Arc::clone(&self.store) as _, rules)
    }

    /// The bookings of the accounts, in the order in which the accounts were made.
    async fn booked(&self) -> Vec<Value> {
        let accounts = self.store.list(&Query::new(DocumentKind::Account)).await.expect("accounts");
        accounts.iter().map(|account| tests::stored::json_of(account)["account"]["booked"].clone()).collect()
    }

    /// The outcomes of the records of all calls.
    async fn outcomes(&self) -> Vec<Outcome> {
        self.closed().await.into_iter().map(|record| record.outcome).collect()
    }
}

fn ada() -> RunOptions {
    RunOptions::new().principal("ada").tenant("north")
}

fn read_call(id: &str, letters: u32) -> ToolCall {
    ToolCall::text(id, "budgets__read", format!(r#"{{"letters":{letters}}}"#))
}

fn write_call(id: &str) -> ToolCall {
    ToolCall::text(id, "world__write", r#"{"number":7}"#)
}

async fn outcome(run: &Run, call: ToolCall) -> Outcome {
    run.exec(call).await.outcome()
}

#[track_caller]
fn refused(result: &ToolExecResult, key: &str) {
    assert_eq!((result.outcome(), result.executed()), (Outcome::BudgetExceeded, false));
    assert!(result.to_model().contains(key), "{}", result.to_model());
}

/// Makes ten calls at once, each as a task of the runtime of this thread.
async fn ten(run: Run) -> Vec<ToolExecResult> {
    let call = |at| if at % 2 == 0 { write_call(&format!("{at}")) } else { read_call(&format!("{at}"), 3) };
    let tasks: Vec<_> = (0..10).map(|at| tokio::spawn(run.exec(call(at)))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("it ends"));
    }
    results
}

#[tokio::test]
async fn a_batch_over_two_processes_cannot_overshoot() {
    let rig = Rig::new(1000);
    let rules = "[budgets.tenant]\nwindow = '1h'\ncalls = 10\n[budgets.principal]\nwindow = '1d'\ncalls = 100";
    let runners = [rig.process(rules), rig.process(rules)];
    let runs = runners.iter().flat_map(|runner| ["ada", "bob"].map(|name| runner.run(ada().principal(name))));
    let threads: Vec<_> = runs
        .map(|run| {
            std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
                runtime.block_on(ten(run))
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
    for result in results.iter().filter(|result| result.outcome() != Outcome::Ok) {
        refused(result, "until 2026-01-01T13:00:00Z (budgets.tenant.calls)");
    }
    let outcomes: Vec<_> = results.iter().map(ToolExecResult::outcome).collect();
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert_eq!((count(Outcome::Ok), count(Outcome::BudgetExceeded), rig.effects()), (10, 30, 10));
    assert_eq!(rig.outcomes().await.len(), 40, "each has a record");
    let booked = rig.booked().await;
    let calls: Vec<_> = booked.iter().filter_map(|spend| spend["calls"].as_u64()).collect();
    assert_eq!(
        (calls.contains(&10), calls.iter().sum::<u64>()),
        (true, 20),
        "the tenant's and its principals': {calls:?}"
    );
}

#[tokio::test]
async fn an_account_begins_again_with_its_window() {
    let rig = Rig::new(1000);
    let rules = "budgets.tenant = [{ window = '1h', calls = 2 }, { window = '1d', calls = 3 }]";
    let run = rig.process(rules).run(ada());
    assert_eq!(outcome(&run, read_call("1", 1)).await, Outcome::Ok);
    assert_eq!(outcome(&run, read_call("2", 2)).await, Outcome::Ok);
    refused(&run.exec(read_call("3", 3)).await, "until 2026-01-01T13:00:00Z");
    rig.clock.advance(Duration::from_secs(29 * 60 + 59));
    refused(&run.exec(read_call("4", 4)).await, "until 2026-01-01T13:00:00Z");
    rig.clock.advance(Duration::from_secs(1));
    assert_eq!(outcome(&run, read_call("5", 5)).await, Outcome::Ok);
    refused(&run.exec(read_call("6", 6)).await, "until 2026-01-02T00:00:00Z");
    // A clock that jumps back opens no window for a second time, and neither does its way forward.
    for (at, now) in (7..).zip(["2026-01-01T12:59:00Z", "2025-06-01T00:00:00Z", "2026-01-01T23:59:59Z"]) {
        rig.clock.set(now.parse().expect("a time"));
        refused(&run.exec(read_call(now, at)).await, "until 2026-01-02T00:00:00Z");
    }
    rig.clock.set("2026-01-02T00:00:00Z".parse().expect("a time"));
    assert_eq!(outcome(&run, read_call("10", 10)).await, Outcome::Ok);
}

#[tokio::test]
async fn a_clock_that_jumps_back_refills_nothing() {
    let rig = Rig::new(1000);
    let run = rig.process("budgets.principal = { window = '1h', calls = 1 }").run(ada());
    assert_eq!(outcome(&run, read_call("1", 1)).await, Outcome::Ok);
    for (id, now) in [("2", "2026-01-01T11:00:00Z"), ("3", "2026-01-01T12:59:59Z")] {
        rig.clock.set(now.parse().expect("a time"));
        refused(&run.exec(read_call(id, 2)).await, "budgets.principal.calls");
    }
    // The account stays in its window until the clock has passed it.
    rig.clock.set("2026-01-01T13:00:00Z".parse().expect("a time"));
    assert_eq!(outcome(&run, read_call("4", 3)).await, Outcome::Ok);
}

#[tokio::test]
async fn a_dropped_future_settles() {
    let rig = Rig::new(0);
    let rules = "budgets.default.max_result_bytes = 1000\nbudgets.principal = { window = '1h', bytes = 2500 }";
    let run = rig.process(rules).run(ada());
    let stuck = [
        rig.stuck(run.exec(read_call("1", 1))).await,
        rig.stuck(rig.process(rules).run(ada()).exec(write_call("2"))).await,
    ];
    refused(&run.exec(read_call("3", 1)).await, "budgets.principal.bytes");
    assert_eq!(rig.booked().await[0]["bytes"], 2000);
    for task in stuck {
        task.abort();
        assert!(task.await.is_err());
    }
    assert_eq!((&rig.booked().await[0]["bytes"], &rig.booked().await[0]["calls"]), (&0.into(), &2.into()));
    rig.open(10);
    assert_eq!(outcome(&run, read_call("4", 500)).await, Outcome::Ok);
    assert_eq!(rig.booked().await[0]["bytes"], 502, "the text and its quotes");
    let cut = run.exec(read_call("5", 5000)).await;
    let bytes = 502 + cut.value().expect("a value").get().len();
    assert_eq!(rig.booked().await[0]["bytes"], bytes, "a long text is cut to what it may be");
    assert!(bytes <= 1502, "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn time_is_held_and_what_passed_is_booked() {
    let rig = Rig::new(0);
    let rules = "budgets.default.max_runtime_ms = 1000\nbudgets.tenant = { window = '1h', time_ms = 2000 }";
    let run = rig.process(rules).run(ada());
    let stuck = [rig.stuck(run.exec(write_call("1"))).await, rig.stuck(run.exec(read_call("2", 1))).await];
    refused(&run.exec(read_call("3", 2)).await, "budgets.tenant.time_ms");
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.open(10);
    for task in stuck {
        task.await.expect("it ends");
    }
    let time = rig.booked().await[0]["time"].clone();
    assert_eq!((&time["secs"], &time["nanos"]), (&0.into(), &600_000_000.into()));
    assert_eq!(outcome(&run, read_call("4", 3)).await, Outcome::Ok);
}

/// Without their own limits, parallel calls share the rest of the run's time, and unused time is free again.
#[tokio::test(start_paused = true)]
async fn parallel_calls_share_the_time_of_their_run() {
    let rig = Rig::new(0);
    let run = rig.process("parallel = 3\nbudgets.run.time_ms = 3000").run(ada());
    let mut stuck = Vec::new();
    for at in 1..=3 {
        stuck.push(rig.stuck(run.exec(read_call(&at.to_string(), at))).await);
    }
    refused(&run.exec(read_call("4", 4)).await, "budgets.run.time_ms");
    tokio::time::sleep(Duration::from_millis(600)).await;
    rig.open(3);
    for task in stuck {
        task.await.expect("it ends");
    }
    let [refusal, done @ ..] = &*rig.outcomes().await else { panic!("four calls") };
    assert_eq!((*refusal, done), (Outcome::BudgetExceeded, &[Outcome::Ok; 3][..]));
    // Two more calls may run at the same time as this one.
    let (rig, began) = (Rig::new(0), tokio::time::Instant::now());
    let run = rig.process("parallel = 3\nbudgets.run.time_ms = 1200").run(ada());
    assert_eq!(outcome(&run, read_call("1", 1)).await, Outcome::Timeout);
    assert_eq!(began.elapsed(), Duration::from_millis(400));
}

/// A turn of a model counts for its principal and its tenant, whichever process and conversation it belongs to.
#[tokio::test]
async fn turns_are_counted_over_runs_and_processes() {
    for (holder, of) in [("tenant", "bob"), ("principal", "ada")] {
        let rig = Rig::new(1000);
        let rules = format!("budgets.{holder} = {{ window = '1h', turns = 3 }}");
        let turns = |many| Agent::new(ScriptedModel::new((0..many).map(|_| ScriptedTurn::text("Yes."))));
        let mut first = turns(2).converse(rig.process(&rules).run(ada()));
        assert!(matches!(first.send("One?").await, TurnOutcome::Answered { .. }));
        assert!(matches!(first.send("Two?").await, TurnOutcome::Answered { .. }));
        let mut second = turns(1).converse(rig.process(&rules).run(ada().principal(of)));
        assert!(matches!(second.send("One?").await, TurnOutcome::Answered { .. }), "{holder}");
        for conversation in [&mut first, &mut second] {
            match conversation.send("Three?").await {
                TurnOutcome::Stopped { reason: StopReason::Budget(exceeded), .. } => {
                    assert_eq!(exceeded.key(), format!("budgets.{holder}.turns"));
                }
                ended => panic!("{holder}: {ended:?}"),
            }
        }
        assert_eq!(rig.booked().await[0]["turns"], 3, "{holder}");
        // A call needs no turn, and another principal has other turns.
        let call = rig.process(&rules).run(ada()).exec(read_call("1", 1)).await;
        assert_eq!(call.outcome(), Outcome::Ok, "{holder}");
        let other = if holder == "tenant" { ada().tenant("south") } else { ada().principal("bob") };
        let mut other = turns(1).converse(rig.process(&rules).run(other));
        assert!(matches!(other.send("One?").await, TurnOutcome::Answered { .. }), "{holder}");
        // The next window.
        rig.clock.advance(Duration::from_hours(1));
        let mut later = turns(1).converse(rig.process(&rules).run(ada()));
        assert!(matches!(later.send("One?").await, TurnOutcome::Answered { .. }), "{holder}");
    }
}

#[tokio::test]
async fn what_a_dead_process_holds_is_free_in_the_next_window() {
    let rig = Rig::new(0);
    let rules = "budgets.default.max_result_bytes = 1000\nbudgets.principal = { window = '1h', bytes = 1500 }";
    // Killed: its future neither continues nor is dropped.
    std::mem::forget(rig.stuck(rig.process(rules).run(ada()).exec(read_call("1", 1))).await);
    let run = rig.process(rules).run(ada());
    rig.open(10);
    refused(&run.exec(read_call("2", 1)).await, "budgets.principal.bytes");
    rig.clock.advance(Duration::from_hours(1));
    assert_eq!(outcome(&run, read_call("3", 1)).await, Outcome::Ok);
    assert_eq!(rig.booked().await[0]["bytes"], 3);
}

#[tokio::test]
async fn what_ends_in_the_next_window_was_used_in_the_last() {
    let rig = Rig::new(0);
    let rules = "budgets.default.max_result_bytes = 1000\nbudgets.principal = { window = '1h', bytes = 1500 }";
    let run = rig.process(rules).run(ada());
    let stuck = rig.stuck(run.exec(read_call("1", 1))).await;
    rig.clock.advance(Duration::from_hours(1));
    rig.open(10);
    assert_eq!(outcome(&run, read_call("2", 5)).await, Outcome::Ok);
    stuck.await.expect("it ends");
    let booked = rig.booked().await;
    assert_eq!((&booked[0]["bytes"], &booked[0]["calls"]), (&7.into(), &1.into()));
}

#[tokio::test]
async fn a_restored_run_books_on_the_same_accounts() {
    let rig = Rig::new(1000);
    let rules = "budgets.principal = { window = '1h', calls = 2 }";
    let run = rig.process(rules).run(ada());
    assert_eq!(outcome(&run, read_call("1", 1)).await, Outcome::Ok);
    let saved = run.snapshot().await.expect("a snapshot");
    let text = serde_json::to_string(&saved).expect("a document");
    // Under a policy without the budget, and under one with a wider one.
    for wider in ["", "budgets.principal = { window = '1h', calls = 9 }"] {
        let saved = serde_json::from_str(&text).expect("a snapshot");
        let run = rig.process(wider).restore(saved, ada()).await.expect("a run");
        if wider.is_empty() {
            assert_eq!(outcome(&run, read_call("2", 2)).await, Outcome::Ok);
        }
        refused(&run.exec(read_call("3", 3)).await, "budgets.principal.calls");
    }
}

#[tokio::test]
async fn accounts_of_others_are_untouched() {
    let rig = Rig::new(1000);
    let runner = rig.process("budgets.principal = { window = '1h', calls = 1 }");
    let nobody = RunOptions::new;
    // The same principal in another tenant is another one; ids that look alike are not the same.
    let own = [
        ada(),
        ada().principal("bob"),
        ada().tenant("south"),
        nobody().principal("ada"),
        nobody().tenant("north"),
        nobody(),
        nobody().principal(""),
        nobody().principal("north\",\"ada"),
    ];
    for options in own.clone() {
        assert_eq!(outcome(&runner.run(options), read_call("1", 1)).await, Outcome::Ok);
    }
    // Runs that name no principal share one account, so that starting another run is no way around it.
    for options in own {
        refused(&runner.run(options).exec(read_call("1", 1)).await, "budgets.principal.calls");
    }
}

#[tokio::test]
async fn without_the_store_nothing_runs_and_no_model_is_asked() {
    let rig = Rig::new(1000);
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let failing = move |method| match method {
        "update" if is_down.load(Ordering::Acquire) => {
            HookAction::Fail(StoreError::Unavailable("the disk is gone".into()))
        }
        _ => HookAction::Pass,
    };
    let store = Arc::new(HookedStore::new(Arc::clone(&rig.store) as _, failing));
    let run = rig.process_over(store, "budgets.tenant = { window = '1h', tokens = 100, calls = 100 }").run(ada());
    for call in [read_call("1", 1), write_call("2")] {
        let result = run.exec(call).await;
        assert_eq!((result.outcome(), result.executed()), (Outcome::Cancelled, false));
        assert!(result.to_model().contains("did not run"), "{}", result.to_model());
    }
    assert_eq!(rig.effects(), 0);
    assert_eq!(run.exhausted().await.expect_err("it is down").code(), "store_unavailable");
    // A turn that could not be booked is booked as soon as the store is back.
    run.account(Usage::new(60, 40), 0.5);
    assert_eq!(run.exhausted().await.expect_err("it is down").code(), "store_unavailable");
    assert_eq!(run.exhausted().await.expect_err("it is still down").code(), "store_unavailable");
    down.store(false, Ordering::Release);
    let exceeded = run.exhausted().await.expect("it is back").expect("all 100");
    assert_eq!(exceeded.key(), "budgets.tenant.tokens");
    assert_eq!(rig.booked().await[0]["tokens"], 100, "once");
}

#[tokio::test]
async fn a_cost_that_is_no_amount_counts_as_nothing() {
    let rig = Rig::new(1000);
    let run = rig.process("budgets.principal = { window = '1h', cost = 1.0 }").run(ada());
    for cost in [f64::NAN, -5.0, f64::NEG_INFINITY, 0.25] {
        run.account(Usage::default(), cost);
    }
    assert_eq!(run.exhausted().await.expect("a store"), None);
    assert_eq!(rig.booked().await[0]["cost"], 0.25);
    run.account(Usage::default(), f64::INFINITY);
    assert_eq!(run.exhausted().await.expect("a store").expect("all of it").key(), "budgets.principal.cost");
    assert_eq!(rig.booked().await[0]["cost"], f64::MAX);
    refused(&run.exec(read_call("1", 1)).await, "budgets.principal.cost");
}

#[tokio::test]
async fn an_approved_call_without_a_budget_ends_and_does_not_run() {
    let rig = Rig::new(1000);
    let rules = "require_approval_for_tools = ['world__write']\nbudgets.tenant = { window = '1h', calls = 1 }";
    let run = rig.process(rules).run(RunOptions::new().principal("ada"));
    assert_eq!(outcome(&run, write_call("1")).await, Outcome::ApprovalRequired);
    assert_eq!(outcome(&run, write_call("2")).await, Outcome::ApprovalRequired);
    assert_eq!(
        run.resume_shown("1", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits").outcome(),
        Outcome::Ok
    );
    refused(
        &run.resume_shown("2", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits"),
        "budgets.tenant.calls",
    );
    assert_eq!(
        run.resume_shown("2", ApprovalDecision::Approve, &tests::grace()).await.expect_err("decided").code(),
        "not_pending"
    );
    assert_eq!((rig.outcomes().await, rig.effects()), (vec![Outcome::Ok, Outcome::BudgetExceeded], 1));
    assert_eq!(rig.booked().await[0]["calls"], 1);
}

#[tokio::test]
async fn what_began_before_is_not_reported_as_refused() {
    let rig = Rig::new(0);
    let rules = "budgets.tenant = { window = '1d', calls = 1 }";
    let call = || ToolCall::text("c", "world__again", r#"{"number":7}"#);
    let run = || rig.process(rules).run(ada().run_id("run-1"));
    std::mem::forget(rig.stuck(run().exec(call())).await);
    rig.clock.advance(Duration::from_secs(30));
    // It may be repeated, but no budget is left for that, so the outcome of the first attempt stays unknown.
    let result = run().exec(call()).await;
    assert_eq!((result.outcome(), result.executed(), rig.effects()), (Outcome::OutcomeUnknown, true, 1));
}

#[tokio::test]
async fn a_model_is_not_asked_beyond_a_budget_of_its_tenant() {
    let rig = Rig::new(1000);
    let rules = "budgets.tenant = { window = '1h', tokens = 15 }";
    let turns = [
        ScriptedTurn::call("1", "budgets__read", r#"{"letters":1}"#).using(8, 2),
        ScriptedTurn::text("Done.").using(8, 2),
    ];
    let agent = Agent::new(ScriptedModel::new(turns));
    let mut first = agent.converse(rig.process(rules).run(ada()));
    assert!(matches!(first.send("Read.").await, TurnOutcome::Answered { .. }));
    let agent = Agent::new(ScriptedModel::new([]));
    let mut second = agent.converse(rig.process(rules).run(ada().principal("bob")));
    match second.send("Read.").await {
        TurnOutcome::Stopped { reason: StopReason::Budget(exceeded), .. } => {
            assert_eq!(exceeded.key(), "budgets.tenant.tokens");
            assert!(exceeded.until().is_some());
        }
        ended => panic!("{ended:?}"),
    }
}
