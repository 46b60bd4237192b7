//! Workers that end, or lose their store, at every operation on it: another one takes over, and nothing happens twice.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use super::*;

/// Longer than any machine is busy.
const LEASE: Duration = Duration::from_mins(10);

/// How a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The operation does not happen, and the process is gone.
    KilledBefore,
    /// The operation happens, but nobody learns of it: the process is gone.
    KilledAfter,
    /// The process continues without its store.
    Disconnected,
}

/// Takes a run to its end with a worker that ends at its n-th operation, and one that takes over. Returns how many
/// operations the first one made.
async fn survives(end: Option<(End, usize)>) -> usize {
    // The clock stands still until a worker has ended, so that no lease is lost because a machine is busy.
    let clock = Arc::new(ManualClock::at(jiff::Timestamp::now()));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let world = World { store, ..World::new(format!("dying {end:?}")) };
    world.enqueue("Go.").await;
    let (operations, gone, died) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let hook = {
        let (operations, gone, died) = (Arc::clone(&operations), Arc::clone(&gone), Arc::clone(&died));
        move |_: &'static str| {
            let at = operations.fetch_add(1, Ordering::AcqRel);
            let fail = || HookAction::Fail(StoreError::Unavailable("the store is gone".into()));
            if gone.load(Ordering::Acquire) {
                return fail();
            }
            let Some((end, _)) = end.filter(|(_, n)| *n == at) else { return HookAction::Pass };
            gone.store(true, Ordering::Release);
            died.notify_one();
            if end == End::KilledAfter { HookAction::Silence } else { fail() }
        }
    };
    let hooked: Arc<dyn Store> = Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook));
    let first = tokio::spawn(world.worker_on(hooked).lease(LEASE).run(std::future::pending()));
    let is_over = async {
        died.notified().await;
        clock.advance(LEASE);
    };
    let second = || world.worker().lease(LEASE);
    let decided = async {
        world.reaches("approval_required").await;
        world.decide(ApprovalDecision::Approve).await;
        world.reaches("answered").await;
    };
    match end {
        None => decided.await,
        Some((End::Disconnected, _)) => {
            let replaced = async {
                is_over.await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = with([second()], decided) => {}
                () = replaced => {}
            }
        }
        Some(_) => {
            let killed = async {
                is_over.await;
                first.abort();
                with([second()], std::future::pending::<()>()).await;
            };
            tokio::select! {
                () = decided => {}
                () = killed => {}
            }
        }
    }
    first.abort();
    assert!(world.refused().await.is_empty(), "{end:?}: the person decided once");
    let (records, effects) = world.ends().await;
    let ids: Vec<_> = records.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ALL, "{end:?}: one record for each call");
    for (id, outcome) in &records {
        let times = effects.get(id).copied().unwrap_or(0);
        match outcome {
            Outcome::Ok => assert_eq!(times, u32::from(!id.starts_with('r')), "{end:?}: {id}"),
            Outcome::OutcomeUnknown => assert!(times <= 1, "{end:?}: {id} took effect {times} times"),
            other => panic!("{end:?}: {id} is {other:?}"),
        }
    }
    let unknown = records.iter().filter(|(_, outcome)| *outcome == Outcome::OutcomeUnknown).count();
    assert!(unknown <= usize::from(end.is_some()), "{end:?}: {records:?}");
    let asked = world.asked.load(Ordering::Acquire);
    assert!(asked <= 3 + u32::from(end.is_some()), "{end:?}: the model was asked {asked} times for three turns");
    operations.load(Ordering::Acquire)
}

#[tokio::test]
async fn a_worker_that_ends_anywhere_is_replaced() {
    let all = survives(None).await;
    assert!(all > 30, "{all}");
    // Not all together, because each looks at its store all the time.
    let places = Arc::new(Semaphore::new(24));
    let mut cases = JoinSet::new();
    for at in 0..all {
        for end in [End::KilledBefore, End::KilledAfter, End::Disconnected] {
            let places = Arc::clone(&places);
            cases.spawn(async move {
                let _place = places.acquire_owned().await;
                survives(Some((end, at))).await
            });
        }
    }
    while let Some(case) = cases.join_next().await {
        case.expect("it survives");
    }
}
