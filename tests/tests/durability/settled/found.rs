//! A settlement finds its call by the ledger of its run, however many other outcomes are unsettled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tests::stored::{document, json_of};
use tests::world::{HookAction, HookedStore};
use tool_runtime::Reconciled;
use tool_runtime::agent::RunQueue;
use tool_runtime::call::CallId;
use tool_runtime::store::{DocumentKind, Query, Store, Transaction};

use super::{Rig, person};

impl Rig {
    /// A process whose store lists one document at a time, and the number of its listings.
    fn counting(&self) -> (tool_runtime::ToolRunner, Arc<AtomicUsize>) {
        let lists = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&lists);
        let hooked = HookedStore::new(Arc::clone(&self.shared.store) as _, move |method| {
            counted.fetch_add(usize::from(method == "list"), Ordering::SeqCst);
            HookAction::Pass
        });
        let policy = "allowed_tools = ['settled__pay', 'settled__once']";
        (self.shared.start(Arc::new(hooked.short_pages(1)), policy, self.capabilities()), lists)
    }
}

/// Settles the call of a run while others have an unknown outcome. Returns how many listings that took.
async fn listings(others: usize, tool: &str, by_queue: bool) -> usize {
    let rig = Rig::new();
    for other in 0..others {
        rig.unknown(&format!("other-{other}"), "settled__pay", "c1").await;
    }
    rig.unknown("run", tool, "c1").await;
    let ((runner, lists), id, grace) = (rig.counting(), CallId::new("c1"), person("grace"));
    let settled = if by_queue {
        RunQueue::new(&runner).settle("run", Some("acme"), Some("ada"), &id, Reconciled::Prevented, &grace).await
    } else {
        let run = runner.run(tool_runtime::RunOptions::new().run_id("run").principal("ada").tenant("acme"));
        run.settle(&id, Reconciled::Prevented, &grace).await
    };
    settled.expect("it is settled");
    assert_eq!(rig.unsettled().await.len(), others.min(1), "the others are twins of each other");
    lists.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_settlement_does_not_read_the_other_unsettled_outcomes() {
    for by_queue in [true, false] {
        let alone = listings(0, "settled__once", by_queue).await;
        assert_eq!(listings(1, "settled__once", by_queue).await, alone, "by_queue: {by_queue}");
    }
}

/// Earlier versions left the key of the effect out of the entry of a call that had ended.
#[tokio::test]
async fn a_call_of_an_earlier_version_is_found() {
    let rig = Rig::new();
    rig.unknown("run", "settled__pay", "c1").await;
    let listed = rig.shared.store.list(&Query::new(DocumentKind::Call)).await.expect("it lists").remove(0);
    let mut json = json_of(&listed);
    assert!(json["call"].as_object_mut().expect("an entry").remove("effect").is_some());
    let (key, older) = (listed.key.clone(), document(listed.key, &json));
    let write = move |transaction: &mut Transaction| transaction.put(older.clone());
    rig.shared.store.update(vec![key], Box::new(write)).await.expect("it writes");
    let settled = rig.settle("run", "c1", Reconciled::Prevented, "grace").await;
    assert_eq!(settled, Ok(tool_runtime::Outcome::Cancelled));
    assert!(rig.unsettled().await.is_empty());
}
