//! The ways of deciding: a conversation, a worker, a queue, a graph, a script, and a connection that only reads.

use std::sync::atomic::AtomicBool;

use tool_runtime::agent::{Agent, CodeMode, Conversation, Graph, RunQueue, TurnOutcome, Worker};
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::store::MemoryStore;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{Connection, ToolCatalog, ToolPolicy};

use super::*;

const PAY: &str = r#"{"account":"a-1","cents":50}"#;

fn agent() -> Agent {
    Agent::new(ScriptedModel::new([ScriptedTurn::call("c1", "world__pay", PAY)]))
}

fn goes_on() -> Agent {
    Agent::new(ScriptedModel::new([ScriptedTurn::text("Paid.")]))
}

/// The question that a conversation shows, which is the one of the store.
async fn shown(rig: &Rig, conversation: &Conversation) -> Question {
    let call = conversation.waiting().next().expect("it waits");
    let pending = tests::pending_calls(&*rig.shared.store, &RecordFilter::default()).await;
    let pending = pending.iter().find(|pending| pending.call_id == call.id).expect("it waits");
    assert_eq!((&call.question, &call.summary), (&pending.question(), &pending.summary));
    call.question.clone()
}

#[tokio::test]
async fn a_conversation_shows_the_new_question() {
    let rig = Rig::new();
    let runner = rig.process(ASKS);
    let mut conversation = agent().converse(runner.run(of("run-1")));
    let ended = conversation.send("Pay.").await;
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    let first = shown(&rig, &conversation).await;
    rig.accounts.set(90);
    let ended = conversation.decide(&first, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    assert_eq!(calls[0].refused.as_ref().and_then(|refused| refused.mismatch), Some(DecisionError::World));
    let second = shown(&rig, &conversation).await;
    assert_eq!((&calls[0].question, first != second), (&second, true));
    // The old decision again.
    let again = conversation.decide(&first, ApprovalDecision::Approve, &grace()).await;
    assert_eq!(again.expect_err("it asks another question").code(), "not_allowed");
    // The conversation continues in another process.
    let saved = conversation.save().await.expect("saved");
    drop(conversation);
    let mut restored = goes_on().restore(&rig.process(ASKS), of("run-1"), &saved).await.expect("restored");
    assert_eq!(shown(&rig, &restored).await, second);
    restored.decide(&second, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(rig.shared.effects(), 1);
}

#[tokio::test]
async fn a_call_that_ends_because_the_world_changes_lets_the_model_go_on() {
    let rig = Rig::new();
    rig.accounts.answer(Answer::Anything);
    let turns = [ScriptedTurn::call("c1", "world__pay", PAY), ScriptedTurn::text("Not paid.")];
    let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(rig.process(ASKS).run(of("run-1")));
    conversation.send("Pay.").await;
    for at in 0..4 {
        let question = shown(&rig, &conversation).await;
        let ended = conversation.decide(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert_eq!(matches!(ended, TurnOutcome::Waiting { .. }), at < 3, "{ended:?}");
    }
    assert_eq!((conversation.waiting().count(), rig.shared.effects()), (0, 0));
}

/// Runs a worker until something has happened.
async fn with_worker<T>(worker: Worker, happens: impl Future<Output = T>) -> T {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let happened = happens.await;
    drop(stop);
    running.await.expect("no panic").expect("the store is there");
    happened
}

/// Waits until the call has a question other than `before`.
async fn next(rig: &Rig, run: &str, before: Option<&Question>) -> Question {
    loop {
        let calls = tests::pending_calls(&*rig.shared.store, &RecordFilter::default()).await;
        let question = calls.iter().find(|call| &*call.run_id == run).map(PendingCall::question);
        match question {
            Some(question) if Some(&question) != before => return question,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// A decision is posted to the run; a worker carries it out, and the next decision answers the new question.
#[tokio::test]
async fn a_worker_asks_anew() {
    let rig = Rig::new();
    let runner = rig.process(ASKS);
    let queue = RunQueue::new(&runner);
    let mut conversation = agent().converse(runner.run(of("run-1")));
    conversation.send("Pay.").await;
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    let first = rig.waiting().await.question();
    rig.accounts.set(90);
    let posted = queue.decide("run-1", &first, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(posted.is_none());
    let worker = |agent| Worker::new(agent, rig.process(ASKS)).lease(Duration::from_hours(1));
    let second = with_worker(worker(Agent::new(ScriptedModel::new([]))), next(&rig, "run-1", Some(&first))).await;
    let late = queue.decide("run-1", &first, ApprovalDecision::Approve, &grace()).await;
    assert_eq!(late.expect_err("it was replaced").code(), "not_allowed");
    assert_eq!((rig.refused().await, rig.shared.effects()), (vec![DecisionError::World, DecisionError::Question], 0));
    queue.decide("run-1", &second, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    with_worker(worker(goes_on()), async {
        while &*queue.find("run-1", Some("acme")).await.expect("it is there").0.state != "answered" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(rig.shared.effects(), 1);
}

/// A queue carries a decision out for a call that an application made by itself.
#[tokio::test]
async fn a_queue_asks_anew() {
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    rig.accounts.set(90);
    let runner = rig.process(ASKS);
    let queue = RunQueue::new(&runner);
    let decide = async |question| queue.decide("run-1", question, ApprovalDecision::Approve, &grace()).await;
    of_another_world(&decide(&question).await.expect("it waits").expect("it is carried out here"));
    let second = rig.waiting().await.question();
    let again = decide(&question).await.expect("it waits").expect("it is refused here");
    assert_eq!(again.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
    assert_eq!(decide(&second).await.expect("it waits").expect("a result").outcome(), Outcome::Ok);
    assert_eq!(rig.shared.effects(), 1);
}

fn with(rig: &Rig, tool: impl Into<tool_runtime::registration::DynamicTool>, rules: &str) -> ToolRunner {
    let policy = format!("allowed_tools = ['world__pay']\n{rules}");
    let catalog = ToolCatalog::builder().tool::<Pay>().dynamic(tool).build().expect("a catalog");
    rig.shared.start_with(catalog, Arc::clone(&rig.shared.store) as _, &policy, rig.capabilities())
}

const INNER: &str = "allowed_graphs = ['payer']\nrequire_approval_for_tools = ['world__pay']";

fn graph() -> Graph {
    let report = ScriptedTurn::text(r#"{"summary":"Paid.","findings":[]}"#);
    let turns = [ScriptedTurn::call("g1", "world__pay", PAY), report];
    Graph::new("payer", "1", Agent::new(ScriptedModel::new(turns))).description("Pays.").tools(["world__pay"])
}

/// The call of a graph waits with the call that the graph makes, and asks again with it.
#[tokio::test]
async fn a_graph_asks_anew() {
    let rig = Rig::new();
    let runner = with(&rig, graph(), INNER);
    let run = runner.run(of("run-1"));
    let first = asked(&run.exec(ToolCall::text("p1", "graph__payer", r#"{"task":"Pay."}"#)).await);
    rig.accounts.set(90);
    let second = asked(&approve(&run, &first).await);
    assert_ne!(first, second);
    let pending = run.pending(&CallId::new("p1")).await.expect("a store").expect("it waits");
    let graph = pending.graph.as_deref().expect("it waits with its call");
    assert_eq!(graph.refused.as_ref().and_then(|refused| refused.mismatch), Some(DecisionError::World));
    let summary = graph.summary.as_deref().expect("a sentence");
    assert!(summary.contains("“balance” was “120” and is “90”"), "{summary}");
    // The first decision again answers another question.
    let again = approve(&run, &first).await;
    assert_eq!(again.error().and_then(|error| error.mismatch), Some(DecisionError::Question));
    assert_eq!(rig.shared.effects(), 0);
    let result = approve(&run, &second).await;
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1), "{}", result.to_model());
}

#[tokio::test]
async fn a_script_asks_anew() {
    let rig = Rig::new();
    let code = || CodeMode::new("code", "1").tools(["world__pay"]).effects().timeout(Duration::from_hours(1));
    let script = serde_json::json!({"script": "world__pay(#{ account: \"a-1\", cents: 50 })"}).to_string();
    let run = with(&rig, code(), "allowed_graphs = ['code']").run(of("run-1"));
    let first = asked(&run.exec(ToolCall::text("s1", "graph__code", script)).await);
    rig.accounts.set(90);
    let second = asked(&approve(&run, &first).await);
    assert_ne!(first, second);
    assert_eq!(rig.shared.effects(), 0);
    // Another process.
    let run = with(&rig, code(), "allowed_graphs = ['code']").run(of("run-1"));
    let result = approve(&run, &second).await;
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 1), "{}", result.to_model());
}

/// A graph whose call ends because the world always changes.
#[tokio::test]
async fn a_graph_goes_on_after_a_call_that_ended() {
    let rig = Rig::new();
    rig.accounts.answer(Answer::Anything);
    let run = with(&rig, graph(), INNER).run(of("run-1"));
    let mut question = asked(&run.exec(ToolCall::text("p1", "graph__payer", r#"{"task":"Pay."}"#)).await);
    for _ in 0..3 {
        question = asked(&approve(&run, &question).await);
    }
    let result = approve(&run, &question).await;
    assert_eq!((result.outcome(), rig.shared.effects()), (Outcome::Ok, 0), "{}", result.to_model());
}

/// A vault that only reads.
#[capability(effect = read_only, kind = "vault")]
trait Vault {
    fn seal(&self) -> String;
}

/// A vault that changes.
#[capability(effect = state_change, kind = "keys")]
trait Keys {
    fn turn(&self);
}

struct Locked;

impl Vault for Locked {
    fn seal(&self) -> String {
        "whole".to_owned()
    }
}

impl Keys for Locked {
    fn turn(&self) {}
}

/// Opens a vault.
#[tool(name = "world__open", effect = state_change, redact = ["$"])]
struct Open {}

#[tool]
impl Open {
    async fn run(self, keys: &Connection<dyn Keys>) -> Result<bool, ToolError> {
        keys.turn();
        Ok(true)
    }

    async fn precondition(self, vault: &Connection<dyn Vault>) -> Result<Precondition, ToolError> {
        Ok(Precondition::of("seal", vault.seal()))
    }
}

/// Opens it without a condition.
#[tool(name = "world__force", effect = state_change, redact = ["$"])]
struct Force {}

#[tool]
impl Force {
    async fn run(self, keys: &Connection<dyn Keys>, vault: &Connection<dyn Vault>) -> Result<bool, ToolError> {
        keys.turn();
        Ok(vault.seal().is_empty())
    }
}

/// Counts the connections of each kind, and refuses them if it is shut.
#[derive(Default)]
struct Broker {
    opened: Mutex<Vec<String>>,
    shut: AtomicBool,
}

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        self.opened.lock().unwrap().push(request.kind.to_owned());
        if self.shut.load(Ordering::Acquire) {
            return Err(ConnectionError::Expired);
        }
        Ok(match request.kind {
            "vault" => ConnectionHandle::new::<dyn Vault>(Arc::new(Locked)),
            _ => ConnectionHandle::new::<dyn Keys>(Arc::new(Locked)),
        })
    }
}

/// Before an approval only connections that read are opened, and only for a tool with a precondition.
#[tokio::test]
async fn only_connections_that_read_are_opened_for_a_waiting_call() {
    let broker = Arc::new(Broker::default());
    let rules = "allowed_tools = ['world__open', 'world__force']\n\
                 require_approval_for_tools = ['world__open', 'world__force']";
    let catalog = ToolCatalog::builder().tool::<Open>().tool::<Force>().build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(rules).expect("a policy"))
        .broker(Arc::clone(&broker))
        .approvals(true)
        .store(Arc::new(MemoryStore::new()))
        .build()
        .expect("a runner");
    let connect =
        |id: &str| of(id).connection("vault", ConnectionId::new("v")).connection("keys", ConnectionId::new("k"));
    let opened = || std::mem::take(&mut *broker.opened.lock().unwrap());
    let run = runner.run(connect("run-1"));
    let forced = asked(&run.exec(ToolCall::text("c1", "world__force", "{}")).await);
    assert!(opened().is_empty());
    let question = asked(&run.exec(ToolCall::text("c2", "world__open", "{}")).await);
    assert_eq!(opened(), ["vault"]);
    let pending = run.pending(&CallId::new("c2")).await.expect("a store").expect("it waits");
    assert_eq!(pending.summary.as_deref(), Some("This call depends on: “seal” is “whole”."));
    assert_eq!(approve(&run, &question).await.outcome(), Outcome::Ok);
    assert_eq!(opened().len(), 2, "each is opened once");
    assert_eq!(approve(&run, &forced).await.outcome(), Outcome::Ok);
    assert_eq!(opened().len(), 2);
    broker.shut.store(true, Ordering::Release);
    let refused = run.exec(ToolCall::text("c3", "world__open", "{}")).await;
    assert_eq!((refused.outcome(), refused.executed()), (Outcome::ConnectionUnavailable, false));
}
