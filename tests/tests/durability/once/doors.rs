//! Effect keys and unknown outcomes through a graph, a script and a run under a lease.

use std::sync::Arc;

use tests::world::EventLog;
use tool_runtime::agent::{Agent, CodeMode, Graph, Input, RunQueue, SavedConversation, TurnOutcome};
use tool_runtime::call::{CallId, Caller, Decider};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{RecordFilter, Store};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{
    Event, Outcome, Reconciled, Run, RunOptions, ToolCall, ToolCatalog, ToolExecResult, ToolInvocationRecord,
    ToolRunner,
};

use super::{Rig, call, code, of};

const TOOLS: [&str; 2] = ["once__refund", "once__control"];

/// A process with a graph whose model has these turns, and with scripts.
fn process_of(rig: &Rig, turns: Vec<ScriptedTurn>) -> ToolRunner {
    let graph = Graph::new("payer", "1", Agent::new(ScriptedModel::new(turns))).description("Pays.").tools(TOOLS);
    let scripts = CodeMode::new("code", "1").tools(TOOLS).effects();
    let catalog = ToolCatalog::builder().collect().dynamic(graph).dynamic(scripts).build().expect("a catalog");
    let policy = "allowed_tools = ['once__refund', 'once__control']\nallowed_graphs = ['payer', 'code']";
    rig.shared.start_with(catalog, Arc::clone(&rig.shared.store) as _, policy, rig.capabilities())
}

/// A process whose graph is not called.
fn plain(rig: &Rig) -> ToolRunner {
    process_of(rig, Vec::new())
}

/// A process whose graph makes one call of this tool, and answers.
fn process(rig: &Rig, tool: &str) -> ToolRunner {
    process_of(rig, vec![pays(tool), ScriptedTurn::text(REPORT)])
}

fn pays(tool: &str) -> ScriptedTurn {
    ScriptedTurn::call("g1", tool, r#"{"payment_id":"p-1"}"#)
}

const REPORT: &str = r#"{"summary":"Done.","findings":[]}"#;

fn graph(id: &str) -> ToolCall {
    ToolCall::text(id, "graph__payer", r#"{"task":"Pay it back."}"#)
}

fn script(id: &str, tool: &str) -> ToolCall {
    let script = format!("{tool}(#{{ payment_id: \"p-1\" }})");
    ToolCall::text(id, "graph__code", serde_json::json!({ "script": script }).to_string())
}

fn grace() -> Decider {
    Decider::new("grace").tenant("acme").because("the bank's page shows it")
}

async fn approved(run: &Run, asked: &ToolExecResult) -> ToolExecResult {
    let question = asked.question().unwrap_or_else(|| panic!("no question: {}", asked.to_model())).clone();
    run.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it is decided")
}

/// The record of the call that a graph or a script of this run made.
async fn inner(rig: &Rig, run: &str) -> ToolInvocationRecord {
    let of_run = |record: &ToolInvocationRecord| match &record.caller {
        Caller::Graph { run: of, .. } => **of == *run,
        _ => false,
    };
    let mut records: Vec<_> = rig.shared.closed().await.into_iter().filter(of_run).collect();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

/// Leaves a call with an unknown outcome in the run `run-1`.
async fn unknown(rig: &Rig, first: ToolCall) {
    let run = plain(rig).run(of("run-1", "ada"));
    let running = rig.shared.stuck(run.exec(first)).await;
    run.cancel();
    running.await.expect("it ends");
}

#[tokio::test]
async fn a_graph_gets_the_result_of_an_earlier_call_or_is_told_that_it_runs() {
    let rig = Rig::new();
    let running = rig.shared.stuck(plain(&rig).run(of("run-1", "ada")).exec(call("once__refund", "c1"))).await;
    let asked = process(&rig, "once__refund").run(of("run-2", "bob")).exec(graph("p1")).await;
    assert_eq!(asked.outcome(), Outcome::Ok, "the graph ends: {}", asked.to_model());
    let told = inner(&rig, "run-2").await;
    assert_eq!((told.outcome, told.tool_code.as_deref()), (Outcome::Cancelled, Some("in_progress")));
    rig.shared.open(1);
    running.await.expect("it ends");
    assert_eq!(process(&rig, "once__refund").run(of("run-3", "bob")).exec(graph("p1")).await.outcome(), Outcome::Ok);
    let had = inner(&rig, "run-3").await;
    assert_eq!((had.outcome, had.executed), (Outcome::Ok, false));
    assert_eq!(had.earlier_call(), Some(("run-1", &CallId::new("c1"))));
    assert_eq!(rig.shared.effects(), 1);
}

#[tokio::test]
async fn a_twin_in_a_graph_or_a_script_asks_with_the_unknown_call() {
    let rig = Rig::new();
    unknown(&rig, call("once__control", "c1")).await;
    rig.shared.open(9);
    for (id, made) in [("run-2", graph("p1")), ("run-3", script("p1", "once__control"))] {
        let heard = EventLog::default();
        let runner = if id == "run-2" { process(&rig, "once__control") } else { plain(&rig) };
        let run = runner.run(of(id, "ada").events(heard.sink()));
        let mut asked = run.exec(made).await;
        assert_eq!(asked.outcome(), Outcome::ApprovalRequired, "{id}: {}", asked.to_model());
        let before = rig.shared.effects();
        // The person reads it at the call that they decide on, which is that of the graph.
        let told = || {
            heard.take().into_iter().find_map(|event| match event {
                Event::ToolCallSuspended { summary, .. } => summary,
                _ => None,
            })
        };
        let mut summary = told();
        if summary.is_none() {
            // The script asks for each effect. An approval of a question without the unknown call does not count.
            asked = approved(&run, &asked).await;
            assert_eq!((asked.outcome(), rig.shared.effects()), (Outcome::ApprovalRequired, before), "{id}");
            summary = told();
        }
        let summary = summary.unwrap_or_default();
        assert!(summary.contains("unknown outcome: call “c1” of run “run-1”"), "{id}: {summary}");
        let done = approved(&run, &asked).await;
        assert_eq!((done.outcome(), rig.shared.effects()), (Outcome::Ok, before + 1), "{id}: {}", done.to_model());
    }
}

/// A call that a graph or a script made has an unknown outcome. A person settles it, and a later call gets its result.
#[tokio::test]
async fn a_call_inside_a_graph_or_a_script_is_settled() {
    for is_script in [false, true] {
        let rig = Rig::new();
        // The graph is cut in its call, so that its model does not answer.
        let runner = process_of(&rig, if is_script { Vec::new() } else { vec![pays("once__refund")] });
        let run = runner.run(of("run-1", "ada"));
        let running = if is_script {
            let asked = run.exec(script("p1", "once__refund")).await;
            let question = asked.question().expect("a script asks for each effect").clone();
            let deciding = run.clone();
            let approve = async move {
                deciding.resume(&question, ApprovalDecision::Approve, &grace()).await.expect("it is decided")
            };
            rig.shared.stuck(approve).await
        } else {
            rig.shared.stuck(run.exec(graph("p1"))).await
        };
        run.cancel();
        running.await.expect("it ends");
        let left = inner(&rig, "run-1").await;
        assert_eq!((left.outcome, left.effect_key.as_deref()), (Outcome::OutcomeUnknown, Some("refund:p-1")));
        let store: &dyn Store = &*rig.shared.store;
        let listed = store.unsettled_calls(&RecordFilter::default()).await.expect("a list");
        assert!(
            listed.iter().flatten().any(|call| call.run_id == left.run_id && call.tool_call_id == left.tool_call_id)
        );
        let paid = || Reconciled::TookEffect("\"7 of p-1\"".to_owned());
        let queue = RunQueue::new(&plain(&rig));
        let by = |name: &'static str, tenant: &'static str| Decider::new(name).tenant(tenant);
        for stranger in [by("ada", "acme"), by("grace", "other")] {
            let refused = queue
                .settle(&left.run_id, Some("acme"), left.principal.as_deref(), &left.tool_call_id, paid(), &stranger)
                .await;
            assert!(refused.is_err(), "{is_script}: {refused:?}");
        }
        let settled = queue
            .settle(&left.run_id, Some("acme"), left.principal.as_deref(), &left.tool_call_id, paid(), &grace())
            .await;
        assert_eq!(settled.expect("it is settled").outcome(), Outcome::Ok, "{is_script}");
        let again = queue
            .settle(&left.run_id, Some("acme"), left.principal.as_deref(), &left.tool_call_id, paid(), &grace())
            .await;
        assert_eq!(again.expect_err("once").code(), "not_pending");
        let later = rig.call(("run-9", "bob"), "once__refund", "c1").await;
        assert_eq!((later.outcome(), later.executed(), rig.shared.effects()), (Outcome::Ok, false, 1), "{is_script}");
        assert_eq!(later.earlier_call(), Some((&*left.run_id, &left.tool_call_id)));
    }
}

/// A service that continues a run of the store itself.
#[tokio::test]
async fn a_run_under_a_lease_has_the_keys_and_the_twins() {
    let rig = Rig::new();
    let runner = plain(&rig);
    let running = rig.shared.stuck(runner.run(of("run-1", "ada")).exec(call("once__refund", "c1"))).await;
    let turns = ["c1", "c2"].map(|id| ScriptedTurn::call(id, "once__refund", r#"{"payment_id":"p-1"}"#));
    let control = ScriptedTurn::call("c3", "once__control", r#"{"payment_id":"p-1"}"#);
    let model = turns.into_iter().chain([control, ScriptedTurn::text("Paid back.")]);
    let agent = Agent::new(ScriptedModel::new(model));
    let mut conversation = agent.converse(runner.run(of("run-2", "ada")));
    conversation.accept(Input::from("Pay it back.")).await.expect("a message");
    let queue = RunQueue::new(&runner);
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    let take = async || {
        let (leased, saved) = queue.take("run-2", Some("acme"), Some("ada"), "web").await.expect("it is free");
        let options = leased.options(RunOptions::new().principal("ada").tenant("acme"));
        (leased, agent.restore(&runner, options, saved).await.expect("restored"))
    };
    let closed = async |id: &str| {
        let records = rig.shared.closed().await;
        records.into_iter().find(|record| *record.run_id == *"run-2" && record.tool_call_id.as_str() == id)
    };
    let (leased, mut conversation) = take().await;
    // The model's turn, and its call.
    while closed("c1").await.is_none() {
        conversation.step().await;
        let saved: SavedConversation = conversation.save().await.expect("saved");
        leased.save(&saved, "running", None).await.expect("it has the run");
    }
    let told = closed("c1").await.expect("a record");
    assert_eq!((told.outcome, told.tool_code.as_deref()), (Outcome::Cancelled, Some("in_progress")));
    unknown(&rig, call("once__control", "c9")).await;
    rig.shared.open(1);
    running.await.expect("it ends");
    let ended = conversation.receive(Input::new()).await.expect("no input");
    let TurnOutcome::Waiting { calls } = ended else { panic!("the twin waits: {ended:?}") };
    let had = closed("c2").await.expect("a record");
    assert_eq!((had.outcome, had.executed), (Outcome::Ok, false));
    assert_eq!(had.earlier_call(), Some(("run-1", &CallId::new("c1"))));
    let summary = calls[0].summary.as_deref().unwrap_or_default();
    assert!(summary.contains("unknown outcome: call “c9” of run “run-1”"), "{summary}");
    leased.save(&conversation.save().await.expect("saved"), "approval_required", None).await.expect("it has the run");
    leased.release(None).await.expect("released");
    drop(conversation);
    let (leased, mut conversation) = take().await;
    let question = conversation.waiting().next().expect("it waits").question.clone();
    let ended = conversation.decide(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(matches!(&ended, TurnOutcome::Answered { text } if text == "Paid back."), "{ended:?}");
    assert_eq!(closed("c3").await.map(|record| (record.outcome, record.executed)), Some((Outcome::Ok, true)));
    assert_eq!(rig.shared.effects(), 3, "the refund, the call of unknown outcome, and its twin");
    leased.save(&conversation.save().await.expect("saved"), "answered", None).await.expect("it has the run");
    assert_eq!(code(&rig.call(("run-3", "ada"), "once__refund", "c1").await), None);
}
