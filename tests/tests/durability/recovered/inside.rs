//! Calls inside a graph whose run has an owner: they belong to the owner of the run that called the graph.

use tests::world::{HookAction, HookedStore};
use tool_runtime::ToolCall;
use tool_runtime::agent::Graph;
use tool_runtime::store::{DocumentKind, Query, StoreError, Transaction};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};

use super::*;

pub(super) const REPORT: &str = r#"{"summary":"Paid."}"#;

/// The lease of the run, which is longer than that of its calls.
const HOLDS: Duration = Duration::from_hours(1);

/// A model that makes one call, and answers.
pub(super) struct Calls(pub(super) &'static str, pub(super) String, pub(super) &'static str);

#[async_trait]
impl ModelClient for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let called = request.messages.iter().any(|message| matches!(message, Message::Assistant(_)));
        let Self(tool, arguments, answer) = self;
        let id = if tool.starts_with("graph") { "g" } else { "c" };
        let turn = if called { ScriptedTurn::text(*answer) } else { ScriptedTurn::call(id, *tool, arguments.as_str()) };
        ScriptedModel::new([turn]).complete(request, show).await
    }
}

fn runner(rig: &Rig) -> ToolRunner {
    let tool = if rig.tool == "keyed" { "recovered__keyed" } else { "recovered__plain" };
    let graph = Graph::new("payer", "1", Agent::new(Calls(tool, ARGUMENTS.to_owned(), REPORT)));
    let graph = graph.description("Pays.").tools(["recovered__keyed", "recovered__plain"]);
    let catalog = ToolCatalog::builder().tool::<Keyed>().tool::<plain>().dynamic(graph).build().expect("a catalog");
    let policy = "allowed_tools = ['recovered__keyed', 'recovered__plain']\nallowed_graphs = ['payer']";
    ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"))
        .capabilities(Capabilities::new().with(Arc::clone(&rig.there) as Arc<dyn Outside>))
        .lease(LEASE)
        .clock(Arc::clone(&rig.clock))
        .store(Arc::clone(&rig.store))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn agent() -> Agent {
    Agent::new(Calls("graph__payer", r#"{"task":"Pay."}"#.to_owned(), "Done."))
}

fn worker(rig: &Rig) -> Worker {
    Worker::new(agent(), runner(rig)).lease(HOLDS)
}

async fn open(rig: &Rig) -> Vec<(String, bool)> {
    let open = rig.dyn_store().unfinished_calls(&RecordFilter::default()).await.expect("a store");
    let mut open: Vec<_> =
        open.into_iter().flatten().map(|call| (call.call_id.to_string(), call.is_abandoned)).collect();
    open.sort();
    open
}

/// A worker has the run and is stopped inside the call of a graph, longer than the call's lease and shorter than its
/// own. Sweeps of other processes leave the calls to it. The next worker closes both.
#[test]
fn a_call_inside_a_graph_is_left_to_the_owner_of_the_run() {
    for tool in ["keyed", "plain"] {
        let rig = Rig::new(tool, Dies::After);
        runtime().block_on(async {
            let mut conversation = agent().converse(runner(&rig).run(ada()));
            conversation.accept(Input::from("Pay.")).await.expect("a message");
            rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        });
        let stopped = worker(&rig);
        rig.dies(async move { drop(stopped.run(std::future::pending()).await) });
        rig.later(async {
            runner(&rig).sweep().await.expect("swept");
            rig.dyn_store().sweep().await.expect("swept");
            assert_eq!(open(&rig).await, [("c".to_owned(), true), ("g".to_owned(), true)], "{tool}");
            rig.clock.advance(HOLDS);
            let (stop, mut stopped) = tokio::sync::watch::channel(false);
            let next = tokio::spawn(worker(&rig).run(async move { drop(stopped.wait_for(|stop| *stop).await) }));
            while rig.state().await != "answered" {
                assert!(!next.is_finished(), "the worker ended");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            stop.send_replace(true);
            next.await.expect("no panic").expect("the store is there");
            assert_eq!(open(&rig).await, []);
        });
        assert_eq!(rig.effects(), [1], "{tool}");
    }
}

/// The call of the graph is over, and its process died before it closed the calls inside: the owner of the run does not
/// come back to them.
#[test]
fn a_call_inside_a_graph_that_is_over_is_closed_although_the_run_is_kept() {
    let rig = Rig::new("plain", Dies::After);
    let run = runner(&rig).run(ada());
    runtime().block_on(async {
        let conversation = agent().converse(runner(&rig).run(ada()));
        let kept = rig.queue().begin(&conversation.save().await.expect("saved"), "web").await.expect("it is new");
        kept.release(None).await.expect("it has the run");
    });
    let task = ToolCall::text("g", "graph__payer", r#"{"task":"Pay."}"#);
    rig.dies(async move { drop(run.exec(task).await) });
    rig.later(async {
        let calls = Query { due: Some(jiff::Timestamp::MAX), ..Query::new(DocumentKind::Call) };
        let calls = rig.store.list(&calls).await.expect("a list");
        let outer =
            calls.into_iter().map(|listed| listed.key).find(|key| &**key.scope() == "run").expect("the graph's");
        let named = outer.clone();
        let lose = move |transaction: &mut Transaction| transaction.remove(&named);
        rig.store.update(vec![outer], Box::new(lose)).await.expect("it is over");
        runner(&rig).sweep().await.expect("swept");
        assert_eq!(open(&rig).await, []);
    });
}

/// A document that cannot be read does not keep the sweep from the calls after it.
#[test]
fn a_sweep_goes_on_after_a_waiting_call_that_cannot_be_read() {
    let rig = Rig::new("plain", Dies::After);
    let run = runner(&rig).run(ada());
    let task = ToolCall::text("g", "graph__payer", r#"{"task":"Pay."}"#);
    rig.dies(async move { drop(run.exec(task).await) });
    rig.later(async {
        let lists = Mutex::new(0);
        let store = HookedStore::new(Arc::clone(&rig.store) as Arc<dyn Store>, move |method| {
            *of(&lists) += u32::from(method == "list");
            // The first one lists the calls, the second one the waiting calls of the caller's run.
            let is_it = method == "list" && *of(&lists) == 2;
            if is_it { HookAction::Fail(StoreError::Corrupt("of a later version".into())) } else { HookAction::Pass }
        });
        let swept = (&store as &dyn Store).sweep().await;
        assert_eq!(swept.expect_err("one cannot be read").code(), "store_corrupt");
        assert_eq!(open(&rig).await, []);
    });
}
