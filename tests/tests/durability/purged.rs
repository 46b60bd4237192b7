//! Purges and erasures that are cut off at every operation of the store: what is left verifies, and the next one
//! continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tests::world::{HookAction, HookedStore};
use tool_runtime::ToolInvocationRecord;
use tool_runtime::call::Decider;
use tool_runtime::store::{MemoryStore, Retention, RetentionReport, Store, StoreError, Verification};

const RUNS: u64 = 3;

async fn history() -> Arc<dyn Store> {
    let store = MemoryStore::new();
    for run in 0..RUNS {
        for call in ["a", "b"] {
            store.append(ToolInvocationRecord::example(&format!("run-{run}"), call).into()).await.expect("it keeps");
        }
    }
    let store: Arc<dyn Store> = Arc::new(store);
    store.anchor(|_| {}).await.expect("it anchors");
    store
}

async fn remove(store: &dyn Store, erases: bool) -> Result<RetentionReport, StoreError> {
    let retention = Retention::new(store, Decider::new("grace"));
    if erases { retention.erase("ada", None).await } else { retention.purge(Duration::from_mins(1)).await }
}

#[tokio::test]
async fn a_removal_is_cut_off_anywhere() {
    for erases in [false, true] {
        for kept in [false, true] {
            let mut at = 0;
            loop {
                let (store, calls) = (history().await, Arc::new(AtomicU32::new(0)));
                let count = Arc::clone(&calls);
                let cut = HookedStore::new(Arc::clone(&store), move |_| {
                    let lost = || StoreError::Unavailable("the disk is gone".into());
                    match count.fetch_add(1, Ordering::AcqRel) {
                        now if now < at => HookAction::Pass,
                        now if now == at && kept => HookAction::Lost(lost()),
                        _ => HookAction::Fail(lost()),
                    }
                });
                let what = format!("erases: {erases}, operation {at} fails, kept: {kept}");
                let ended = remove(&cut, erases).await;
                let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("it is read");
                assert_eq!(verified.findings, [], "{what}");
                let again = remove(&*store, erases).await.expect("it continues");
                assert_eq!(again.kept_runs, 0, "{what}");
                let verified = Verification::of_store(&*store, &[], |_| {}).await.expect("it is read");
                let removed = if erases { verified.erased } else { verified.purged };
                assert_eq!((verified.findings, removed), (vec![], 2 * RUNS), "{what}");
                if ended.is_ok() {
                    break;
                }
                at += 1;
                assert!(at < 200, "it ends");
            }
            assert!(at > 3, "it was cut off");
        }
    }
}
