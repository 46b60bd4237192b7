//! Notices about calls: each event writes one, in the transaction that changes the call, in every way of changing it.

mod contents;
mod databases;
mod delivery;
mod doors;
mod graphs;
#[cfg(unix)]
mod killed;
mod policies;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tests::world::{LEASE, Processes, World};
use tests::{DecideShown as _, Shown as _};
use tool_runtime::agent::{Agent, RunQueue, TurnOutcome, Worker};
use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{DocumentKind, Query, Store, StoredNotice};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Pays a payment back.
#[tool(name = "notices__refund", effect = external_side_effect, redact = ["$"], summary = "Refunds {payment}")]
async fn refund(
    world: &dyn World,
    /// The payment.
    payment: String,
    /// The amount.
    amount: u64,
    /// The secret of the payer.
    #[arg(sensitive)]
    pin: String,
) -> Result<u64, ToolError> {
    drop((payment, pin));
    world.happen();
    world.door().pass().await;
    Ok(amount)
}

const POLICY: &str = "allowed_tools = ['notices__refund']\n";
const ASKS: &str = "require_approval_for_tools = ['notices__refund']\n";
const NOTICES: &str = "\
    [notices]\n\
    link = 'https://app.example/{tenant}/approvals/{run}/{call}?by={principal}'\n\
    [notices.tools.notices__refund]\n\
    arguments = ['/amount']\n";

const ARGUMENTS: &str = r#"{"payment":"p/7","amount":1200,"pin":"CANARY"}"#;

/// The processes of the test, with a world in which `open` calls can end.
fn processes(open: usize) -> Processes {
    Processes::at("2026-01-01T00:00:00Z", open)
}

fn catalog() -> ToolCatalog {
    ToolCatalog::builder().tool::<refund>().build().unwrap_or_else(|error| panic!("{error}"))
}

fn runner_over(processes: &Processes, store: Arc<dyn Store>, policy: &str, catalog: ToolCatalog) -> ToolRunner {
    processes.start_with(catalog, store, policy, processes.capabilities())
}

fn runner_of(processes: &Processes, policy: &str, catalog: ToolCatalog) -> ToolRunner {
    runner_over(processes, Arc::clone(&processes.store) as _, policy, catalog)
}

fn runner(processes: &Processes, policy: &str) -> ToolRunner {
    runner_of(processes, policy, catalog())
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run 1").principal("ada").tenant("acme")
}

fn by(name: &str) -> Decider {
    Decider::new(name).tenant("acme").because("CANARY")
}

fn call() -> ToolCall {
    ToolCall::text("c/1", "notices__refund", ARGUMENTS)
}

/// A store with a call that waits in a run.
async fn waits(processes: &Processes, policy: &str) -> Run {
    let run = runner(processes, policy).run(ada());
    assert_eq!(run.exec(call()).await.outcome(), Outcome::ApprovalRequired);
    run
}

/// Makes calls that wait, in a run over a database, which has its own clock.
async fn wait_in(store: &Arc<dyn Store>, calls: usize) {
    let policy = ToolPolicy::from_toml(&format!("{POLICY}{ASKS}[notices]\n")).expect("a policy");
    let builder = ToolRunner::builder(catalog(), policy).capabilities(processes(0).capabilities()).approvals(true);
    let run = builder.store(Arc::clone(store)).build().expect("a runner").run(ada());
    for number in 0..calls {
        let call = ToolCall::text(format!("c{number}"), "notices__refund", ARGUMENTS);
        assert_eq!(run.exec(call).await.outcome(), Outcome::ApprovalRequired);
    }
}

/// The notices of the tenant, oldest first.
async fn notices(store: &dyn Store) -> Vec<StoredNotice> {
    let notices = StoredNotice::all(store, Some("acme")).await.expect("notices");
    notices.into_iter().collect::<Result<_, _>>().expect("it reads")
}

/// The events of the notices, each with its data. Nothing in them is secret.
async fn events(processes: &Processes) -> Vec<(String, Value)> {
    let notices = notices(&*processes.store).await;
    let read = |notice: &StoredNotice| {
        assert!(!notice.payload().contains("CANARY"), "{}", notice.payload());
        let mut payload: Value = serde_json::from_str(notice.payload()).expect("JSON");
        assert_eq!(payload["type"], *notice.event);
        assert_eq!(payload["timestamp"], notice.created_at.to_string());
        (notice.event.to_string(), payload["data"].take())
    };
    notices.iter().map(read).collect()
}

async fn kinds(processes: &Processes) -> Vec<String> {
    let told = |(event, data): (String, Value)| match &data["decision"] {
        Value::String(decision) => format!("{event} {decision}"),
        _ => event,
    };
    events(processes).await.into_iter().map(told).collect()
}

#[tokio::test]
async fn a_call_that_waits_and_its_decision_are_noticed_once_each() {
    let processes = processes(1);
    let run = waits(&processes, &format!("{POLICY}{ASKS}{NOTICES}")).await;
    let question = run.question("c/1").await;
    run.resume(&question, ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
    run.resume(&question, ApprovalDecision::Approve, &by("grace")).await.expect_err("it was decided");
    let call = json!({
        "run_id": "run 1", "call_id": "c/1", "tool": "notices__refund", "tenant": "acme", "principal": "ada",
        "sentence": "Refunds “p/7”",
        "link": "https://app.example/acme/approvals/run%201/c%2F1?by=ada",
        "arguments": {"/amount": 1200}, "question": question.to_string(),
    });
    let with = |more: Value| {
        let mut all = call.clone();
        all.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        all
    };
    let expires = "2026-01-02T00:00:00Z";
    let waiting = json!({"waits_for": "approval", "expires_at": expires, "required_approvals": 1});
    let expected = [
        ("call.waiting".to_owned(), with(waiting)),
        ("call.decided".to_owned(), with(json!({"decision": "approved", "decider": "grace"}))),
    ];
    assert_eq!(events(&processes).await, expected);
    assert_ne!(notices(&*processes.store).await[0].id, notices(&*processes.store).await[1].id);
}

#[tokio::test]
async fn a_payload_has_no_argument_unless_it_is_listed() {
    let processes = processes(1);
    let run = waits(&processes, &format!("{POLICY}{ASKS}[notices]\nevents = ['waiting']\n")).await;
    run.resume_shown("c/1", ApprovalDecision::Deny(Some("CANARY".into())), &by("grace")).await.expect("it waits");
    let mut events = events(&processes).await;
    assert_eq!(events.len(), 1, "only the events of the policy");
    let data = events[0].1.as_object_mut().expect("an object");
    // The digits of the digest are arbitrary.
    data.remove("question").expect("a question");
    assert_eq!((data.get("arguments"), data.get("link")), (None, None));
    let rest = json!(data).to_string();
    assert!(rest.contains("p/7") && !rest.contains("1200"), "the sentence names the payment: {rest}");
}

/// A call that needs several approvals is decided by the last one. Other arguments ask another question.
#[tokio::test]
async fn an_approval_that_does_not_suffice_is_no_event() {
    let processes = processes(1);
    let run = waits(&processes, &format!("{POLICY}{ASKS}{NOTICES}[approvals]\nrequired = 2\n")).await;
    run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it counts");
    assert_eq!(kinds(&processes).await, ["call.waiting"]);
    let edited = ApprovalDecision::ApproveEdited(ARGUMENTS.replace("1200", "900"));
    run.resume_shown("c/1", edited, &by("heidi")).await.expect("it asks again");
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.waiting"]);
    assert_eq!(events(&processes).await[1].1["arguments"], json!({"/amount": 900}));
    run.resume_shown("c/1", ApprovalDecision::Approve, &by("ivan")).await.expect("it is the last");
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.waiting", "call.decided approved"]);
}

#[tokio::test]
async fn a_call_expires_by_the_sweep_and_by_a_late_touch() {
    for by_sweep in [true, false] {
        let processes = processes(1);
        let policy = format!("{POLICY}{ASKS}{NOTICES}");
        let run = waits(&processes, &policy).await;
        let question = run.question("c/1").await;
        drop(run);
        processes.clock.advance(Duration::from_hours(25));
        if by_sweep {
            runner(&processes, &policy).sweep().await.expect("swept");
        } else {
            let run = runner(&processes, &policy).run(ada());
            let late = run.resume(&question, ApprovalDecision::Approve, &by("grace")).await.expect("it expired");
            assert_eq!(late.outcome(), Outcome::ApprovalExpired);
        }
        runner(&processes, &policy).sweep().await.expect("swept");
        assert_eq!(kinds(&processes).await, ["call.waiting", "call.expired"], "{by_sweep}");
    }
}

#[tokio::test]
async fn a_call_that_is_abandoned_does_not_wait_any_more() {
    let processes = processes(1);
    let run = waits(&processes, &format!("{POLICY}{ASKS}{NOTICES}")).await;
    run.abandon("c/1").await.expect("it waits");
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.decided abandoned"]);
    assert_eq!(events(&processes).await[1].1.get("decider"), None);
}

/// The process that began the call is gone. A process without tools and without a policy closes the call.
#[tokio::test]
async fn a_lost_call_is_noticed_by_the_process_that_closes_it() {
    let processes = processes(0);
    let run = runner(&processes, &format!("{POLICY}{NOTICES}")).run(ada());
    let stuck = processes.stuck(async move { run.exec(call()).await }).await;
    processes.clock.advance(LEASE);
    let store: &dyn Store = &*processes.store;
    store.sweep().await.expect("swept");
    store.sweep().await.expect("swept");
    let expected = json!({
        "run_id": "run 1", "call_id": "c/1", "tool": "notices__refund", "tenant": "acme", "principal": "ada",
        "sentence": "Refunds “p/7”",
        "link": "https://app.example/acme/approvals/run%201/c%2F1?by=ada",
        "arguments": {"/amount": 1200}, "cause": "lost",
    });
    assert_eq!(events(&processes).await, [("call.unknown".to_owned(), expected)]);
    stuck.abort();
}

/// The caller gives up while the tool runs, or the tool takes too long.
#[tokio::test]
async fn a_call_that_is_interrupted_here_is_noticed() {
    let limited = format!("{POLICY}{NOTICES}[budgets.default]\nmax_runtime_ms = 20\n");
    for (policy, cause) in [(format!("{POLICY}{NOTICES}"), "cancelled"), (limited, "timeout")] {
        let processes = processes(0);
        let run = runner(&processes, &policy).run(ada());
        if cause == "cancelled" {
            let cancelled = run.clone();
            let stuck = processes.stuck(async move { run.exec(call()).await }).await;
            cancelled.cancel();
            stuck.await.expect("it ends");
        } else {
            assert_eq!(run.exec(call()).await.outcome(), Outcome::OutcomeUnknown);
        }
        let events = events(&processes).await;
        assert_eq!(events.len(), 1, "{cause}");
        assert_eq!((events[0].0.as_str(), &events[0].1["cause"]), ("call.unknown", &json!(cause)));
    }
}

#[tokio::test]
async fn a_conversation_notices_like_a_run() {
    let processes = processes(1);
    let turns = [ScriptedTurn::call("c/1", "notices__refund", ARGUMENTS), ScriptedTurn::text("Done.")];
    let run = runner(&processes, &format!("{POLICY}{ASKS}{NOTICES}")).run(ada());
    let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(run);
    assert!(matches!(conversation.send("Refund it.").await, TurnOutcome::Waiting { .. }));
    let decided = conversation.decide_shown(&CallId::new("c/1"), ApprovalDecision::Approve, &by("grace")).await;
    assert!(matches!(decided.expect("it waits"), TurnOutcome::Answered { .. }));
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.decided approved"]);
}

/// A worker works until the run of the test is in a state.
async fn works(agent: &Agent, runner: &ToolRunner, state: &str) {
    let queue = RunQueue::new(runner);
    let reached = async {
        while *queue.find("run 1", Some("acme")).await.expect("it is there").0.state != *state {
            tokio::task::yield_now().await;
        }
    };
    let worker = Worker::new(agent.clone(), runner.clone()).lease(LEASE);
    let worked = tokio::time::timeout(Duration::from_hours(1), worker.run(reached)).await;
    worked.expect("it is reached").expect("it works");
}

/// The process of the decider has the store only. The worker that takes the decision carries it out.
#[tokio::test]
async fn a_worker_notices_what_was_posted() {
    let processes = processes(1);
    let policy = format!("{POLICY}{ASKS}{NOTICES}");
    let turns = || [ScriptedTurn::call("c/1", "notices__refund", ARGUMENTS), ScriptedTurn::text("Done.")];
    let agent = Agent::new(ScriptedModel::new(turns()));
    let queue = RunQueue::new(&runner(&processes, &policy));
    let mut conversation = agent.clone().converse(runner(&processes, &policy).run(ada()));
    conversation.accept("Refund it.".into()).await.expect("a message");
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    works(&agent, &runner(&processes, &policy), "approval_required").await;
    let run = runner(&processes, &policy).run(ada());
    let question = run.question("c/1").await;
    let elsewhere = tests::queue(Arc::clone(&processes.store));
    let posted = elsewhere.decide("run 1", &question, ApprovalDecision::Approve, &by("grace")).await;
    assert!(posted.expect("it is posted").is_none());
    assert_eq!(kinds(&processes).await, ["call.waiting"], "the call waits until a worker takes the decision");
    works(&agent, &runner(&processes, &policy), "answered").await;
    assert_eq!(kinds(&processes).await, ["call.waiting", "call.decided approved"]);
}

/// Without the table, the documents of a call are those of an older version, and none is added.
#[tokio::test]
async fn a_policy_without_notices_writes_none() {
    let processes = processes(1);
    let run = waits(&processes, &format!("{POLICY}{ASKS}")).await;
    let list = async |kind| processes.store.list(&Query::new(kind)).await.expect("a list");
    for waiting in list(DocumentKind::Waiting).await {
        assert!(!waiting.to_json().expect("a document").contains("notices\":"));
    }
    run.resume_shown("c/1", ApprovalDecision::Approve, &by("grace")).await.expect("it waits");
    for call in list(DocumentKind::Call).await {
        assert!(!call.to_json().expect("a document").contains("notices\":"));
    }
    assert_eq!(list(DocumentKind::Notice).await.len(), 0);
}
