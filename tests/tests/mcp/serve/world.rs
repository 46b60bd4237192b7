//! A call of a client waits for a decision, and its precondition changes meanwhile: the call asks a new question, and
//! the old decision never counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use tool_runtime::mcp::serve::McpServer;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::MemoryStore;
use tool_runtime::{Precondition, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

use crate::serve::held::{NOBODY, one_waiting, piped, post, posting, recorded, waiting};
use crate::serve::rig::{admitted, request, text};

static BALANCE: AtomicI64 = AtomicI64::new(120);
static PAID: AtomicI64 = AtomicI64::new(0);

/// Pays out.
#[tool(name = "letters__pay", effect = external_side_effect, redact = ["$"], precondition = balance())]
fn pay(
    /// Which account.
    account: String,
) -> Result<String, ToolError> {
    PAID.fetch_add(1, Ordering::AcqRel);
    Ok(format!("paid {account}"))
}

#[expect(clippy::unused_async, reason = "a precondition is asynchronous")]
async fn balance() -> Result<Precondition, ToolError> {
    Ok(Precondition::of("balance", BALANCE.load(Ordering::Acquire)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_world_asks_anew() {
    let store = Arc::<MemoryStore>::default();
    let catalog = ToolCatalog::builder().tool::<pay>().build().unwrap();
    let policy = "allowed_tools = ['letters__pay']\nrequire_approval_for_tools = ['letters__pay']";
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(policy).unwrap()).approvals(true);
    let served = McpServer::builder(runner.store(Arc::clone(&store)).build().unwrap(), admitted).build().unwrap();
    for (client, account) in [(piped(&served, NOBODY).await, "old"), (posting(&served, "ada", NOBODY).await, "new")] {
        BALANCE.store(120, Ordering::Release);
        let before = PAID.load(Ordering::Acquire);
        let paid = async || client.call_tool(request("letters__pay", json!({"account": account}))).await.unwrap();
        let waits = |said: &str| assert!(said.contains("approval_required"), "{said}");
        waits(text(&paid().await));
        let first = one_waiting(&*store).await;
        assert!(first.summary.as_deref().unwrap().contains("“balance” is “120”"));
        BALANCE.store(90, Ordering::Release);
        post(&store, &first, ApprovalDecision::Approve).await;
        waits(text(&paid().await));
        let second = one_waiting(&*store).await;
        assert_eq!((second.call_id == first.call_id, second.question() == first.question()), (true, false));
        assert!(second.summary.as_deref().unwrap().contains("“balance” was “120” and is “90”"));
        assert_eq!(PAID.load(Ordering::Acquire), before);
        post(&store, &second, ApprovalDecision::Approve).await;
        assert_eq!(text(&paid().await), format!("paid {account}"));
        assert_eq!((PAID.load(Ordering::Acquire), waiting(&*store).await.len()), (before + 1, 0));
    }
    assert_eq!(recorded(&*store).await.len(), 2, "one record for each call");
}
