//! Unknown outcomes that a person settles, once, with a record: it happened, it did not, or the tool looks.

mod attacked;
mod found;
mod strangers;
mod waiting;

use std::sync::Arc;

use tests::world::{Bank, BankAnswer, Processes, Statement, World, owned, reconciled};
use tool_runtime::agent::RunQueue;
use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::{Chain, DecisionKind, DecisionRecord, MemoryStore, RecordFilter, Retention, Store};
use tool_runtime::{
    Capabilities, Outcome, Reconciled, Run, RunOptions, ToolCall, ToolError, ToolExecResult, ToolRunner, tool,
};

/// A payment that was made.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Receipt {
    /// Its number.
    number: u32,
    /// On no allowlist.
    inner: String,
}

/// Pays a bill.
#[tool(name = "settled__pay", effect = external_side_effect, redact = ["number"])]
async fn pay(
    world: &dyn World,
    /// Which.
    bill: String,
) -> Result<Receipt, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(Receipt { number: 1, inner: bill })
}

/// Pays a bill, once.
#[tool(name = "settled__once", effect = external_side_effect, redact = ["number"], once = "pay:{bill}")]
struct Once {
    /// Which.
    bill: String,
}

#[tool]
impl Once {
    async fn run(self, world: &dyn World, _statement: &dyn Statement) -> Result<Receipt, ToolError> {
        world.happen();
        world.door().pass().await;
        Ok(Receipt { number: 1, inner: self.bill })
    }

    async fn reconcile(self, _world: &dyn World, statement: &dyn Statement) -> Result<Reconciled<Receipt>, ToolError> {
        Ok(reconciled(statement, || Receipt { number: 5, inner: self.bill }).await)
    }
}

struct Rig {
    shared: Processes,
    bank: Arc<Bank>,
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 0), bank: Arc::default() }
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities().with(Arc::clone(&self.bank) as Arc<dyn Statement>)
    }

    fn process(&self) -> ToolRunner {
        let policy = "allowed_tools = ['settled__pay', 'settled__once']";
        self.shared.start(Arc::clone(&self.shared.store) as _, policy, self.capabilities())
    }

    fn run(&self, id: &str) -> Run {
        self.process().run(RunOptions::new().run_id(id).principal("ada").tenant("acme"))
    }

    async fn unknown(&self, run: &str, tool: &str, id: &str) {
        let run = self.run(run);
        let running = self.shared.stuck(run.exec(call(tool, id))).await;
        run.cancel();
        running.await.expect("it ends");
    }

    async fn settle(&self, run: &str, id: &str, outcome: Reconciled<&str>, by: &str) -> Result<Outcome, &'static str> {
        let result = self.run(run).settle(&CallId::new(id), owned(outcome), &person(by)).await;
        result.map(|result| result.outcome()).map_err(|error| error.code())
    }

    async fn unsettled(&self) -> Vec<(String, String)> {
        let store: &dyn Store = &*self.shared.store;
        let calls = store.unsettled_calls(&RecordFilter::default()).await.expect("it lists");
        calls
            .into_iter()
            .map(|record| record.expect("it reads"))
            .map(|record| (record.run_id.to_string(), record.tool_call_id.to_string()))
            .collect()
    }

    /// The decisions in whole chains: kind, decider, and whether it was refused.
    async fn decisions(&self) -> Vec<(DecisionKind, Option<String>, bool)> {
        let told = |decision: DecisionRecord| {
            let decider = decision.decider.as_ref().map(|decider| decider.principal().to_owned());
            (decision.decision, decider, decision.refused().is_some())
        };
        records(&self.shared.store).await.into_iter().map(told).collect()
    }
}

async fn records(store: &MemoryStore) -> Vec<DecisionRecord> {
    let records = store.records(&RecordFilter::default()).await.expect("records");
    assert_eq!(Chain::verify(&records), Ok(()));
    records.iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
}

fn person(name: &str) -> Decider {
    Decider::new(name.to_owned()).tenant("acme").because("looked at the page")
}

fn call(tool: &str, id: &str) -> ToolCall {
    ToolCall::text(id, tool, r#"{"bill":"b-1"}"#)
}

async fn exec(rig: &Rig, run: &str, tool: &str, id: &str) -> ToolExecResult {
    rig.run(run).exec(call(tool, id)).await
}

#[tokio::test]
async fn a_person_states_that_it_happened() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    rig.unknown("run-2", "settled__once", "c1").await;
    let both = [("run-1", "c1"), ("run-2", "c1")].map(|(run, id)| (run.to_owned(), id.to_owned()));
    assert_eq!(rig.unsettled().await, both);
    let receipt = || Reconciled::TookEffect(r#"{"number":7,"inner":"CANARY"}"#.to_owned());
    // The principal of the run may not, and a person of another tenant does not see the call.
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "ada").await, Err("not_allowed"));
    let stranger = Decider::new("grace").tenant("other");
    let refused = rig.run("run-1").settle(&CallId::new("c1"), Reconciled::Prevented, &stranger).await;
    assert!(matches!(refused, Err(ResumeError::NotWaiting(_))), "{refused:?}");
    // A result that does not fit leaves the outcome unknown.
    for wrong in [r#"{"number":"x","inner":""}"#, "{}", "7", "no JSON"] {
        let mismatch = rig.settle("run-1", "c1", Reconciled::TookEffect(wrong), "grace").await;
        assert_eq!(mismatch, Ok(Outcome::ApprovalMismatch), "{wrong}");
    }
    assert_eq!(rig.unsettled().await, both);
    let result = rig.run("run-1").settle(&CallId::new("c1"), receipt(), &person("grace")).await;
    let result = result.expect("it is settled");
    assert_eq!((result.outcome(), result.to_model()), (Outcome::Ok, r#"{"number":7}"#.to_owned()), "it is projected");
    // Once: a second settlement is refused and recorded.
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "heidi").await, Err("not_pending"));
    let decisions = records(&rig.shared.store).await;
    let settled: Vec<_> = decisions.iter().filter(|decision| decision.refused().is_none()).collect();
    let [settled] = &settled[..] else { panic!("{settled:?}") };
    assert_eq!((settled.decision, settled.decision.code()), (DecisionKind::Happened, "happened"));
    assert_eq!(settled.result.as_ref().map(|result| result.get().to_owned()), Some(r#"{"number":7}"#.to_owned()));
    assert_eq!(settled.decider.as_ref().and_then(Decider::reason), Some("looked at the page"));
    // What was known before.
    let at = "2026-01-01T00:00:00Z".parse().expect("a time");
    assert_eq!(settled.interruption(), Some((at, Some("cancelled"))));
    assert!(refusals_know_nothing(&decisions));
    let refusals: Vec<_> = rig.decisions().await.into_iter().filter(|(.., refused)| *refused).collect();
    let by = |name: &str| refusals.iter().filter(|(_, by, _)| by.as_deref() == Some(name)).count();
    assert_eq!((by("ada"), by("grace"), by("heidi")), (1, 5, 1), "each attempt is recorded: {refusals:?}");
    // The record of the call stays, the ledger answers with the settled result, and twins begin again.
    let records = rig.shared.closed().await;
    assert_eq!(
        records.iter().find(|record| *record.run_id == *"run-1").map(|it| it.outcome),
        Some(Outcome::OutcomeUnknown)
    );
    assert_eq!(exec(&rig, "run-1", "settled__pay", "c1").await.to_model(), r#"{"number":7}"#);
    rig.shared.open(1);
    assert!(exec(&rig, "run-3", "settled__pay", "c1").await.executed());
    assert_eq!(rig.unsettled().await, both[1..]);
}

fn refusals_know_nothing(decisions: &[DecisionRecord]) -> bool {
    decisions.iter().filter(|decision| decision.refused().is_some()).all(|refused| refused.interruption().is_none())
}

/// The settlement has what was known: the interruption, the effect key, and the digest of kept arguments.
#[tokio::test]
async fn a_settlement_records_what_was_known() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    let [settled] = &records(&rig.shared.store).await[..] else { panic!("one decision") };
    assert!(settled.argument_digest.is_some(), "its tool may reconcile, so the arguments were kept");
    let json = serde_json::to_value(settled).expect("JSON");
    let known = serde_json::json!({"since": "2026-01-01T00:00:00Z", "cause": "cancelled", "effect_key": "pay:b-1"});
    assert_eq!(json["unknown"], known);
    // An erasure removes the key, which has arguments, and the chain still fits.
    rig.shared.clock.advance(std::time::Duration::from_hours(1));
    let retention = Retention::new(&*rig.shared.store, person("ivan"));
    assert_eq!(retention.erase("ada", Some("acme")).await.expect("it erases").runs, 1);
    let records = rig.shared.store.records(&RecordFilter::default()).await.expect("records");
    assert_eq!(Chain::verify(&records), Ok(()));
    let text = serde_json::to_string(&records).expect("JSON");
    assert!(!text.contains("b-1") && text.contains("\"cause\":\"cancelled\""), "{text}");
}

#[tokio::test]
async fn a_person_states_that_it_did_not_happen() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    assert_eq!(exec(&rig, "run-2", "settled__once", "c1").await.outcome(), Outcome::ApprovalRequired);
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
    assert!(rig.unsettled().await.is_empty());
    let again = exec(&rig, "run-1", "settled__once", "c1").await;
    assert_eq!((again.outcome(), rig.shared.effects()), (Outcome::Cancelled, 1), "the same call does not begin again");
    rig.shared.open(1);
    assert!(exec(&rig, "run-3", "settled__once", "c1").await.executed(), "another call may");
    assert_eq!(rig.shared.effects(), 2);
}

#[tokio::test]
async fn a_queue_settles_without_the_run_and_lets_the_tool_look() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    let queue = RunQueue::new(&rig.process());
    let (call, look) = (CallId::new("c1"), || Reconciled::<String>::Unknown);
    assert!(queue.settle("run-1", Some("other"), Some("ada"), &call, look(), &person("grace")).await.is_err());
    let asked =
        queue.settle("run-1", Some("acme"), Some("ada"), &call, look(), &person("grace")).await.expect("it is asked");
    assert_eq!(asked.outcome(), Outcome::OutcomeUnknown);
    rig.bank.set(BankAnswer::Paid);
    let asked =
        queue.settle("run-1", Some("acme"), Some("ada"), &call, look(), &person("grace")).await.expect("it is asked");
    assert_eq!((asked.outcome(), asked.to_model().as_str()), (Outcome::Ok, r#"{"number":5}"#));
    let again = queue.settle("run-1", Some("acme"), Some("ada"), &call, look(), &person("grace")).await;
    assert!(matches!(again, Err(ResumeError::NotWaiting(_))), "{again:?}");
    let grace = || Some("grace".to_owned());
    assert_eq!(
        rig.decisions().await,
        [
            (DecisionKind::Reconcile, grace(), false),
            (DecisionKind::Reconcile, grace(), false),
            (DecisionKind::Happened, None, false),
            (DecisionKind::Reconcile, grace(), true),
        ]
    );
    // Later calls of the effect get the settled result, and the call itself has one record.
    let later = exec(&rig, "run-2", "settled__once", "c2").await;
    assert_eq!((later.earlier_call(), rig.shared.effects()), (Some(("run-1", &call)), 1));
    let of_call = rig.shared.closed().await.into_iter().filter(|record| *record.run_id == *"run-1");
    assert_eq!(of_call.count(), 1);
}

/// The right to settle is the right to decide, through both doors: one function of the policy, for the call's own run.
#[tokio::test]
async fn who_may_decide_may_settle_a_call_of_its_own_run() {
    let rig = Rig::new();
    let policy = "allowed_tools = ['settled__pay']\n[approvals.tools.settled__pay]\nroles = ['treasurer']";
    let runner = rig.shared.start(Arc::clone(&rig.shared.store) as _, policy, rig.capabilities());
    // Two principals of a tenant have a run with one id, and a call with one id in it.
    let run_of = |name: &str| runner.run(RunOptions::new().run_id("run-1").principal(name.to_owned()).tenant("acme"));
    for name in ["ada", "bob"] {
        let run = run_of(name);
        let running = rig.shared.stuck(run.exec(call("settled__pay", "c1"))).await;
        run.cancel();
        running.await.expect("it ends");
    }
    let (queue, id) = (RunQueue::new(&runner), CallId::new("c1"));
    let treasurer = |name: &str| person(name).role("treasurer");
    let refused = [
        (person("grace"), "not_allowed"),
        (treasurer("bob"), "not_allowed"),
        (Decider::new("grace").tenant("other").role("treasurer"), "not_pending"),
    ];
    for (decider, code) in refused {
        let by_queue = queue.settle("run-1", Some("acme"), Some("bob"), &id, Reconciled::Prevented, &decider).await;
        assert_eq!(by_queue.map_err(|error| error.code()).map(|_| ()), Err(code), "{decider:?}");
        let by_run = run_of("bob").settle(&id, Reconciled::Prevented, &decider).await;
        assert_eq!(by_run.map_err(|error| error.code()).map(|_| ()), Err(code), "{decider:?}");
    }
    let of_none = queue.settle("run-1", Some("acme"), None, &id, Reconciled::Prevented, &treasurer("grace")).await;
    assert_eq!(of_none.map_err(|error| error.code()).map(|_| ()), Err("not_pending"));
    let settled =
        queue.settle("run-1", Some("acme"), Some("bob"), &id, Reconciled::Prevented, &treasurer("grace")).await;
    assert_eq!(settled.expect("it is settled").outcome(), Outcome::Cancelled);
    // Ada's call is still unknown, and bob may settle it.
    let store: &dyn Store = &*rig.shared.store;
    let left = store.unsettled_calls(&RecordFilter::default()).await.expect("a list");
    let left: Vec<_> = left.into_iter().map(|record| record.expect("it reads").principal).collect();
    assert_eq!(left, [Some("ada".into())]);
    let settled = queue.settle("run-1", Some("acme"), Some("ada"), &id, Reconciled::Prevented, &treasurer("bob")).await;
    assert_eq!(settled.expect("it is settled").outcome(), Outcome::Cancelled);
}

#[tokio::test]
async fn of_several_people_one_settles() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__pay", "c1").await;
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..8 {
        let queue = RunQueue::new(&rig.process());
        tasks.spawn(async move {
            let receipt = Reconciled::TookEffect(r#"{"number":7,"inner":""}"#.to_owned());
            let outcome = if at % 2 == 0 { receipt } else { Reconciled::Prevented };
            queue
                .settle("run-1", Some("acme"), Some("ada"), &CallId::new("c1"), outcome, &person("grace"))
                .await
                .is_ok()
        });
    }
    let settled = tasks.join_all().await.into_iter().filter(|settled| *settled).count();
    assert_eq!(settled, 1);
    let settled = rig.decisions().await.into_iter().filter(|(.., refused)| !refused).count();
    assert_eq!(settled, 1, "one record says so");
}
