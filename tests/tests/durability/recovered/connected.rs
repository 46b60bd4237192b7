//! Calls that borrow a connection of their run, and whose process died: a sweep has no connections, and a broker can
//! fail for a moment.

use tool_runtime::agent::Graph;
use tool_runtime::call::Decider;
use tool_runtime::capability::{ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionRequest};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::{Connection, ToolCall, ToolExecResult};

use super::inside::{Calls, REPORT};
use super::*;

/// An account at the system outside.
#[capability(effect = state_change, kind = "account")]
trait Account {
    /// The system.
    fn outside(&self) -> Arc<There>;
}

struct Ours(Arc<There>);

impl Account for Ours {
    fn outside(&self) -> Arc<There> {
        Arc::clone(&self.0)
    }
}

/// Pays from the account of the user, and can find out whether it did.
#[tool(name = "recovered__linked", effect = state_change, redact = ["$"])]
struct Linked {
    /// The purpose of the payment.
    what: String,
}

impl ToolComponent for Linked {
    type Capabilities = (Cap<Connection<dyn Account>>,);
    type Output = String;

    async fn run(self, (account,): Self::Capabilities, call: &Call<Self>) -> Result<String, ToolError> {
        act(&*account.outside(), &call.idempotency_key()).await
    }

    async fn reconcile(
        self,
        (account,): Self::Capabilities,
        call: &Call<Self>,
    ) -> Result<Reconciled<String>, ToolError> {
        let found = account.outside().has(&call.idempotency_key());
        Ok(if found { Reconciled::TookEffect(format!("found {}", self.what)) } else { Reconciled::Unknown })
    }
}

/// Orders once; the receiver knows the key.
#[tool(name = "recovered__ordered", effect = state_change, idempotent, redact = ["$"], once = "order:{what}")]
async fn ordered(
    ctx: &ToolContext,
    account: &Connection<dyn Account>,
    /// What.
    what: String,
) -> Result<String, ToolError> {
    let _ = what;
    act(&*account.outside(), &ctx.idempotency_key()).await
}

/// Opens accounts, unless it is down.
struct Broker {
    there: Arc<There>,
    is_down: Mutex<bool>,
}

#[async_trait]
impl ConnectionBroker for Broker {
    async fn resolve(&self, _: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        if *of(&self.is_down) {
            return Err(ConnectionError::Failed("it is down".into()));
        }
        Ok(ConnectionHandle::new::<dyn Account>(Arc::new(Ours(Arc::clone(&self.there)))))
    }
}

fn runner(rig: &Rig, broker: &Arc<Broker>) -> ToolRunner {
    let payer = Calls("recovered__linked", ARGUMENTS.to_owned(), REPORT);
    let payer =
        Graph::new("payer", "1", Agent::new(payer)).description("Pays.").tools(["recovered__linked"]).idempotent();
    let catalog = ToolCatalog::builder().tool::<Linked>().tool::<ordered>().dynamic(payer).build().expect("a catalog");
    let asked = if rig.asks { format!("'{}'", rig.name()) } else { String::new() };
    let policy = format!(
        "allowed_tools = ['recovered__linked', 'recovered__ordered']\nallowed_graphs = ['payer']\n\
         require_approval_for_tools = [{asked}]"
    );
    let policy = ToolPolicy::from_toml(&policy).expect("a policy");
    ToolRunner::builder(catalog, policy)
        .broker(Arc::clone(broker))
        .approvals(true)
        .lease(LEASE)
        .clock(Arc::clone(&rig.clock))
        .store(Arc::clone(&rig.store))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn linked() -> RunOptions {
    ada().connection("account", ConnectionId::new("ada's"))
}

fn call() -> ToolCall {
    ToolCall::text("c", "recovered__linked", ARGUMENTS)
}

fn died() -> (Rig, Arc<Broker>) {
    died_in("linked", Dies::After)
}

fn died_in(tool: &'static str, dies: Dies) -> (Rig, Arc<Broker>) {
    let rig = Rig::new(tool, dies);
    let broker = Arc::new(Broker { there: Arc::clone(&rig.there), is_down: Mutex::default() });
    let run = runner(&rig, &broker).run(linked());
    let call = ToolCall::text("c", rig.name(), ARGUMENTS);
    rig.dies(async move { drop(run.exec(call).await) });
    (rig, broker)
}

/// The same request again: another call in another run.
async fn repeated(rig: &Rig, broker: &Arc<Broker>, id: &str) -> ToolExecResult {
    let run = runner(rig, broker).run(linked().run_id(format!("run of {id}")));
    run.exec(ToolCall::text(id, rig.name(), ARGUMENTS)).await
}

async fn restored(rig: &Rig, broker: &Arc<Broker>) -> tool_runtime::Run {
    let saved = runner(rig, broker).run(linked()).snapshot().await.expect("a snapshot");
    runner(rig, broker).restore(saved, linked()).await.expect("restored")
}

/// The ids of the calls whose outcome is to be settled.
async fn unsettled(rig: &Rig) -> Vec<String> {
    let unsettled = rig.dyn_store().unsettled_calls(&RecordFilter::default()).await.expect("a store");
    unsettled.into_iter().flatten().map(|record| record.tool_call_id.to_string()).collect()
}

async fn is_open(rig: &Rig) -> bool {
    !rig.dyn_store().unfinished_calls(&RecordFilter::default()).await.expect("a store").is_empty()
}

/// Attempts to take a call over are not calls of the model: neither the loop guard nor the budget of the run ends them.
#[test]
fn attempts_that_fail_in_passing_are_not_counted() {
    let (rig, broker) = died();
    rig.later(async {
        let run = restored(&rig, &broker).await;
        *of(&broker.is_down) = true;
        for _ in 0..8 {
            let result = run.recover(&"c".into()).await.expect("a store").expect("it began");
            assert_eq!(result.outcome(), Outcome::OutcomeUnknown);
            assert!(is_open(&rig).await, "it waits for its broker");
        }
        *of(&broker.is_down) = false;
        let result = run.recover(&"c".into()).await.expect("a store").expect("it began");
        assert_eq!((result.outcome(), result.to_model()), (Outcome::Ok, "found rent".into()));
        // The model's next call is the first one that counts.
        assert!(!run.exec(ToolCall::text("c2", rig.name(), ARGUMENTS)).await.to_model().contains("same call"));
    });
}

/// A sweep leaves the call to the owner of its run, which has the connection.
#[test]
fn a_sweep_leaves_a_call_that_borrows_a_connection() {
    let (rig, broker) = died();
    rig.later(async {
        runner(&rig, &broker).sweep().await.expect("swept");
        assert!(is_open(&rig).await);
        let ended = runner(&rig, &broker).run(linked()).recover(&"c".into()).await.expect("a store");
        assert_eq!(ended.expect("it is reconciled").outcome(), Outcome::Ok);
    });
    assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""found rent""#.to_owned())));
    assert_eq!(rig.effects(), [1]);
}

/// Its owner is gone for good: a week later the call is closed.
#[test]
fn a_sweep_closes_a_call_that_borrows_a_connection_a_week_later() {
    let (rig, broker) = died();
    rig.clock.advance(7 * 24 * 60 * 60 * Duration::from_secs(1));
    rig.later(async { runner(&rig, &broker).sweep().await.expect("swept") });
    assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None));
}

/// The ways to leave a call open: a sweep without the tool, one without the connection, and a broker that is down for
/// each way to continue.
async fn leave(rig: &Rig, broker: &Arc<Broker>, way: usize) {
    match way {
        0 => drop(rig.dyn_store().sweep().await.expect("swept")),
        1 => drop(runner(rig, broker).sweep().await.expect("swept")),
        _ => {
            *of(&broker.is_down) = true;
            let run = restored(rig, broker).await;
            let result = if way == 2 {
                run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)).await
            } else {
                run.recover(&"c".into()).await.expect("a store").expect("it does not run elsewhere")
            };
            assert_eq!(result.outcome(), Outcome::OutcomeUnknown, "{way}");
            *of(&broker.is_down) = false;
        }
    }
    assert!(is_open(rig).await, "{way}");
    // A second sweep changes nothing.
    rig.dyn_store().sweep().await.expect("swept");
}

/// The broker is down at the first attempt to continue, by each way to continue.
#[test]
fn a_call_whose_connection_fails_is_tried_again() {
    for way in 0..4 {
        let (rig, broker) = died();
        rig.later(async {
            leave(&rig, &broker, way).await;
            let ended = restored(&rig, &broker).await.recover(&"c".into()).await.expect("a store");
            assert_eq!(ended.expect("it is reconciled").outcome(), Outcome::Ok, "{way}");
            assert!(unsettled(&rig).await.is_empty(), "{way}");
        });
        assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""found rent""#.to_owned())), "{way}");
        assert_eq!(rig.effects(), [1], "{way}");
        // The outcome is known, so the next payment is one of its own.
        runtime().block_on(async { assert_eq!(repeated(&rig, &broker, "d").await.outcome(), Outcome::Ok, "{way}") });
        assert_eq!(rig.effects(), [1, 1], "{way}");
    }
}

/// The client repeats its request while the first call is left open: the effect does not begin again.
#[test]
fn a_call_that_is_left_blocks_its_twin() {
    for way in 0..4 {
        let (rig, broker) = died();
        rig.later(async {
            leave(&rig, &broker, way).await;
            assert_eq!(unsettled(&rig).await, ["c"], "{way}");
            let result = repeated(&rig, &broker, "d").await;
            assert_eq!(result.value().map(tool_runtime::call::JsonText::get), Some(r#""found rent""#), "{way}");
            assert_eq!(result.earlier_call().map(|(_, call)| call.as_str()), Some("c"), "{way}");
            assert!(!is_open(&rig).await && unsettled(&rig).await.is_empty(), "{way}");
            let known = restored(&rig, &broker).await.exec(call()).await;
            assert_eq!(known.outcome(), Outcome::Ok, "{way}: the ledger has the settled outcome");
        });
        assert_eq!(rig.effects(), [1], "{way}");
    }
}

/// A person settles a call that is left open.
#[test]
fn a_call_that_is_left_is_settled_by_a_person() {
    for tool in ["linked", "ordered"] {
        let (rig, broker) = died_in(tool, Dies::After);
        rig.later(async {
            leave(&rig, &broker, 1).await;
            let grace = Decider::new("grace").tenant("acme");
            let run = runner(&rig, &broker).run(linked());
            let happened = Reconciled::TookEffect(r#""paid""#.to_owned());
            run.settle(&"c".into(), happened, &grace).await.expect("settled");
            assert!(!is_open(&rig).await && unsettled(&rig).await.is_empty());
        });
        assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "its record stays");
        assert_eq!(rig.effects(), [1]);
    }
}

/// With an effect key, another call waits for a person; the first one does not run again while the second has the key.
#[test]
fn a_call_that_is_left_gives_up_its_effect_key() {
    for is_approved in [false, true] {
        let (rig, broker) = died_in("ordered", Dies::Before);
        rig.later(async {
            leave(&rig, &broker, 1).await;
            let run = runner(&rig, &broker).run(linked().run_id("another"));
            let asked = run.exec(ToolCall::text("d", rig.name(), ARGUMENTS)).await;
            assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
            let question = asked.question().expect("a question").clone();
            let grace = Decider::new("grace").tenant("acme");
            let approve = || run.resume(&question, ApprovalDecision::Approve, &grace);
            if is_approved {
                assert_eq!(approve().await.expect("it waits").outcome(), Outcome::Ok);
            }
            let ended = restored(&rig, &broker).await.recover(&"c".into()).await.expect("a store").expect("it began");
            let expected = if is_approved { Outcome::OutcomeUnknown } else { Outcome::Ok };
            assert_eq!(ended.outcome(), expected, "{is_approved}");
            if !is_approved {
                assert_eq!(
                    approve().await.expect("it waits").value().map(tool_runtime::call::JsonText::get),
                    Some(r#""done""#)
                );
            }
        });
        assert_eq!(rig.effects(), [1], "{is_approved}: it happens once");
    }
}

/// The broker of the worker is down when it finds that another process carried the decision out and died. The run
/// continues with an unknown outcome.
#[test]
fn a_run_does_not_wait_for_a_call_whose_process_is_gone() {
    let rig = Rig { asks: true, ..Rig::new("linked", Dies::After) };
    let broker = Arc::new(Broker { there: Arc::clone(&rig.there), is_down: Mutex::default() });
    let works_until = async |state: &str| {
        let worker = Worker::new(rig.agent(), runner(&rig, &broker)).lease(LEASE);
        let worker = worker.prepare(|_, options| options.connection("account", ConnectionId::new("ada's")));
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let worker =
            tokio::spawn(async move { worker.run(async move { drop(stopped.wait_for(|stop| *stop).await) }).await });
        while rig.state().await != state {
            assert!(!worker.is_finished(), "the worker ended");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        stop.send_replace(true);
        worker.await.expect("no panic").expect("the store is there");
    };
    let saved = runtime().block_on(async {
        let mut conversation = rig.agent().converse(runner(&rig, &broker).run(linked()));
        conversation.accept(Input::from("Pay.")).await.expect("a message");
        rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        works_until("approval_required").await;
        rig.queue().find("run", Some("acme")).await.expect("it is there").1
    });
    let run = runtime().block_on(runner(&rig, &broker).restore(saved.run().clone(), linked())).expect("restored");
    let grace = Decider::new("grace").tenant("acme");
    let pending = runtime().block_on(tests::pending_calls(rig.dyn_store(), &RecordFilter::default()));
    let question = pending[0].question();
    rig.dies(async move { drop(run.resume(&question, ApprovalDecision::Approve, &grace).await) });
    *of(&broker.is_down) = true;
    rig.later(async {
        runner(&rig, &broker).sweep().await.expect("swept");
        works_until("answered").await;
        assert_eq!(unsettled(&rig).await, ["c"]);
        *of(&broker.is_down) = false;
    });
    assert_eq!(rig.effects(), [1]);
}

/// A graph has no connections of its own, but its tools borrow some: a sweep leaves it to its owner, too.
#[test]
fn a_sweep_leaves_a_graph_whose_tools_borrow_connections() {
    let rig = Rig::new("linked", Dies::After);
    let broker = Arc::new(Broker { there: Arc::clone(&rig.there), is_down: Mutex::default() });
    let task = || ToolCall::text("g", "graph__payer", r#"{"task":"Pay."}"#);
    let run = runner(&rig, &broker).run(linked());
    rig.dies(async move { drop(run.exec(task()).await) });
    rig.later(async {
        runner(&rig, &broker).sweep().await.expect("swept");
        assert!(is_open(&rig).await);
        let result = restored(&rig, &broker).await.exec(task()).await;
        assert_eq!(result.value().map(tool_runtime::call::JsonText::get), Some(REPORT));
        let records = rig.store.calls(&RecordFilter::default()).await.expect("records");
        let ends: Vec<_> = records.iter().map(|record| (&*record.name, record.outcome)).collect();
        assert_eq!(ends, [("recovered__linked", Outcome::Ok), ("graph__payer", Outcome::Ok)]);
        assert!(!is_open(&rig).await && unsettled(&rig).await.is_empty());
    });
    assert_eq!(rig.effects(), [1]);
}
