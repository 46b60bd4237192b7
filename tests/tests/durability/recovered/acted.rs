//! Graphs that had an effect before they waited for a person. No result or record states that such a graph did not run.

use std::future::pending;
use std::sync::atomic::AtomicUsize;

use tests::Shown as _;
use tests::world::{HookAction, HookedStore};
use tool_runtime::agent::Graph;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::StoreError;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{Run, ToolCall, ToolExecResult};

use super::inside::REPORT;
use super::*;

/// A model that makes a call with an effect, then one that waits for a person, and answers.
struct Two;

#[async_trait]
impl ModelClient for Two {
    fn name(&self) -> &'static str {
        "two"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let said = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let turn = match said {
            0 => ScriptedTurn::call("a", "recovered__plain", ARGUMENTS),
            1 => ScriptedTurn::call("b", "recovered__keyed", ARGUMENTS),
            _ => ScriptedTurn::text(REPORT),
        };
        ScriptedModel::new([turn]).complete(request, show).await
    }
}

fn rig() -> Rig {
    let rig = Rig::new("plain", Dies::After);
    *of(&rig.there.fate) = None;
    rig
}

fn run(rig: &Rig, store: Arc<dyn Store>) -> Run {
    let graph = Graph::new("two", "1", Agent::new(Two)).description("Pays.");
    let graph = graph.tools(["recovered__keyed", "recovered__plain"]);
    let catalog = ToolCatalog::builder().tool::<Keyed>().tool::<plain>().dynamic(graph).build().expect("a catalog");
    let policy = "allowed_tools = ['recovered__keyed', 'recovered__plain']\nallowed_graphs = ['two']\n\
                  require_approval_for_tools = ['recovered__keyed']";
    ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).expect("a policy"))
        .capabilities(Capabilities::new().with(Arc::clone(&rig.there) as Arc<dyn Outside>))
        .approvals(true)
        .clock(Arc::clone(&rig.clock))
        .store(store)
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
        .run(ada())
}

fn task() -> ToolCall {
    ToolCall::text("g", "graph__two", r#"{"task":"Pay."}"#)
}

/// A store with this action for the operation of this number, and the number of operations so far.
fn hooked(
    rig: &Rig,
    at: usize,
    action: impl Fn() -> HookAction + Send + Sync + 'static,
) -> (Arc<dyn Store>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let store = HookedStore::new(Arc::clone(&rig.store) as Arc<dyn Store>, move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) == at { action() } else { HookAction::Pass }
    });
    (Arc::new(store), count)
}

/// The effect happened, and the result says so.
#[track_caller]
fn is_told(rig: &Rig, result: &ToolExecResult, what: &str) {
    let told = result.to_model();
    let may_have_acted = matches!(result.outcome(), Outcome::Ok | Outcome::OutcomeUnknown | Outcome::ApprovalRequired)
        || told.contains("Part of its task may be done");
    assert!(rig.effects().is_empty() || may_have_acted, "{what}: {told}");
}

/// The store fails once, at each of its operations in turn.
#[tokio::test]
async fn a_graph_that_acted_and_cannot_wait_or_continue() {
    for decides in [false, true] {
        let (mut unknown, mut at) = (0, 0);
        loop {
            let rig = rig();
            let (store, count) = hooked(&rig, at, || HookAction::Fail(StoreError::Unavailable("down".into())));
            let result = if decides {
                let first = run(&rig, Arc::clone(&rig.store) as Arc<dyn Store>);
                assert_eq!(first.exec(task()).await.outcome(), Outcome::ApprovalRequired);
                let (question, second) = (first.question("g").await, run(&rig, store));
                let Ok(result) = second.resume(&question, ApprovalDecision::Approve, &grace()).await else {
                    // Nothing was decided.
                    at += 1;
                    continue;
                };
                result
            } else {
                run(&rig, store).exec(task()).await
            };
            if count.load(Ordering::Relaxed) <= at {
                break;
            }
            is_told(&rig, &result, &format!("{decides}, operation {at}"));
            unknown += usize::from(!rig.effects().is_empty() && result.outcome() == Outcome::OutcomeUnknown);
            at += 1;
        }
        assert!(unknown > 0, "{decides}");
    }
}

/// The future is dropped at each of its polls in turn.
#[tokio::test]
async fn a_graph_that_acted_and_is_dropped() {
    let late = |rig: &Rig| -> Arc<dyn Store> {
        Arc::new(HookedStore::new(Arc::clone(&rig.store) as Arc<dyn Store>, |_| HookAction::Late))
    };
    for decides in [false, true] {
        for times in 1.. {
            let rig = rig();
            let run = run(&rig, late(&rig));
            let ended = if decides {
                assert_eq!(run.exec(task()).await.outcome(), Outcome::ApprovalRequired);
                let question = run.question("g").await;
                let grace = grace();
                crate::cut::polled(times, run.resume(&question, ApprovalDecision::Approve, &grace)).await
            } else {
                crate::cut::polled(times, run.exec(task())).await
            };
            crate::cut::settle().await;
            let records = rig.store.calls(&RecordFilter::run("run")).await.expect("records");
            let closed: Vec<_> = records.iter().map(|record| (record.outcome, record.executed)).collect();
            let is_told = closed.iter().all(|(outcome, executed)| *executed && *outcome != Outcome::Cancelled);
            assert!(rig.effects().is_empty() || is_told, "{decides}, {times} polls: {closed:?}");
            if ended {
                break;
            }
        }
    }
}

/// The future is dropped while the store does not answer one operation. If the call still waits, it has not begun.
#[tokio::test]
async fn a_graph_that_acted_and_still_waits_has_not_begun() {
    let mut waiting = 0;
    for at in 0.. {
        let rig = rig();
        let first = run(&rig, Arc::clone(&rig.store) as Arc<dyn Store>);
        assert_eq!(first.exec(task()).await.outcome(), Outcome::ApprovalRequired);
        let (store, count) = hooked(&rig, at, || HookAction::After(Box::pin(pending())));
        let (question, second) = (first.question("g").await, run(&rig, store));
        let grace = grace();
        let _ = crate::cut::polled(100, second.resume(&question, ApprovalDecision::Approve, &grace)).await;
        crate::cut::settle().await;
        if count.load(Ordering::Relaxed) <= at {
            break;
        }
        if first.pending(&"g".into()).await.expect("a store").is_some() {
            waiting += 1;
            assert!(!second.may_have_begun(&"g".into()), "operation {at}");
        }
    }
    assert!(waiting > 1);
}
