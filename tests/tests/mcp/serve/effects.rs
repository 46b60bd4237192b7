//! Calls of clients for an effect that an earlier call had, or may have had.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::json;
use tool_runtime::agent::RunQueue;
use tool_runtime::call::Decider;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter, Store};
use tool_runtime::{Outcome, Reconciled, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{NOBODY, one_waiting, piped, post, posting, waiting};
use crate::serve::rig::{admitted, request, text};

static REFUNDS: AtomicU32 = AtomicU32::new(0);
static WIRES: AtomicU32 = AtomicU32::new(0);
static BREAKS: AtomicBool = AtomicBool::new(false);

/// Pays back, once.
#[tool(name = "effects__refund", effect = external_side_effect, redact = ["$"], once = "refund:{payment}")]
fn refund(
    /// Which payment.
    payment: String,
    /// Why.
    why: String,
) -> Result<String, ToolError> {
    REFUNDS.fetch_add(1, Ordering::AcqRel);
    Ok(format!("{payment}: {why}"))
}

/// Sends money over a line that may break.
#[tool(name = "effects__wire", effect = external_side_effect, redact = ["$"])]
fn wire(
    /// To whom.
    to: String,
) -> Result<String, ToolError> {
    WIRES.fetch_add(1, Ordering::AcqRel);
    if BREAKS.swap(false, Ordering::AcqRel) {
        return Err(ToolError::unknown("the line broke"));
    }
    Ok(to)
}

fn runner(store: &Arc<MemoryStore>) -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<refund>().tool::<wire>().build().unwrap();
    let policy = "allowed_tools = ['effects__refund', 'effects__wire']\n\
                  require_approval_for_tools = ['effects__refund']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    runner.store(Arc::clone(store)).build().unwrap()
}

/// The second client gets the result at once, though the policy requires an approval.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_happened_asks_no_person() {
    let store = Arc::<MemoryStore>::default();
    let served = McpServer::builder(runner(&store), admitted).build().unwrap();
    let (first, second) = (piped(&served, NOBODY).await, posting(&served, "bob", NOBODY).await);
    let arguments = |why: &str| request("effects__refund", json!({"payment": "p-1", "why": why}));
    assert!(text(&first.call_tool(arguments("broken")).await.unwrap()).contains("approval_required"));
    post(&store, &one_waiting(&*store).await, ApprovalDecision::Approve).await;
    assert_eq!(text(&first.call_tool(arguments("broken")).await.unwrap()), "p-1: broken");
    for client in [&first, &second] {
        let again = client.call_tool(arguments("lost")).await.unwrap();
        assert_ne!(again.is_error, Some(true));
        let said: Vec<_> = again.content.iter().filter_map(|part| part.as_text()).map(|part| &*part.text).collect();
        assert!(said[0].starts_with("p-1: broken") && said.concat().contains("did not run again"), "{said:?}");
    }
    assert_eq!((REFUNDS.load(Ordering::Acquire), waiting(&*store).await.len()), (1, 0));
}

/// An outcome of a client's call is settled while its twin waits: the approval from before does not count.
#[tokio::test(flavor = "multi_thread")]
async fn a_settled_call_asks_anew_about_its_twin() {
    let store = Arc::<MemoryStore>::default();
    let runner = runner(&store);
    let served = McpServer::builder(runner.clone(), admitted).build().unwrap();
    for (client, to) in [(piped(&served, NOBODY).await, "eve"), (posting(&served, "ada", NOBODY).await, "bob")] {
        let before = WIRES.load(Ordering::Acquire);
        let wired = async || client.call_tool(request("effects__wire", json!({"to": to}))).await.unwrap();
        BREAKS.store(true, Ordering::Release);
        assert!(text(&wired().await).contains("outcome_unknown"));
        assert!(text(&wired().await).contains("approval_required"));
        let shown = one_waiting(&*store).await;
        let unsettled = (&*store as &dyn Store).unsettled_calls(&RecordFilter::default()).await.unwrap();
        let grace = Decider::new("grace").tenant("acme");
        let paid = Reconciled::TookEffect(format!("\"{to}\""));
        let unsettled = unsettled[0].as_ref().unwrap();
        let (run, id) = (&*unsettled.run_id, &unsettled.tool_call_id);
        let settled = RunQueue::new(&runner).settle(run, Some("acme"), Some("ada"), id, paid, &grace).await.unwrap();
        assert_eq!(settled.outcome(), Outcome::Ok);
        post(&store, &shown, ApprovalDecision::Approve).await;
        assert!(text(&wired().await).contains("approval_required"));
        let anew = one_waiting(&*store).await;
        assert!(anew.summary.as_deref().unwrap().contains("and took effect"), "{:?}", anew.summary);
        assert_eq!(WIRES.load(Ordering::Acquire), before + 1);
        post(&store, &anew, ApprovalDecision::Approve).await;
        assert_eq!(text(&wired().await), to);
        assert_eq!((WIRES.load(Ordering::Acquire), waiting(&*store).await.len()), (before + 2, 0));
    }
}
