//! Restored copies of a waiting call: a decision on one copy counts for all copies over one store, even after the store
//! has dropped the call.

use tests::Shown as _;
use tool_runtime::runner::{ApprovalDecision, RunSnapshot};
use tool_runtime::store::Clock;
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::*;

/// The processes have the machine's time, as the stores of these tests have: what waits expires by the store's.
fn rig() -> Rig {
    let now = <dyn Clock>::system().now().to_string();
    Rig { shared: Processes::at(&now, 0), events: Arc::default() }
}

/// A snapshot as another process reads it.
fn moved(snapshot: &RunSnapshot) -> RunSnapshot {
    let value: serde_json::Value = serde_json::to_value(snapshot).expect("a document");
    serde_json::from_value(value).expect("a snapshot")
}

async fn suspended(runner: &ToolRunner) -> RunSnapshot {
    let run = runner.run(ada());
    assert_eq!(run.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired);
    run.snapshot().await.expect("a snapshot")
}

/// Makes the store drop everything that it may drop.
async fn crowd_out(runner: &ToolRunner) {
    let run = runner.run(ada().run_id("run-2"));
    for id in ["x", "y"] {
        assert!(run.exec(ToolCall::text(id, "cut__other", "{}")).await.is_ok());
    }
}

#[tokio::test]
async fn a_store_that_forgot_a_call_does_not_let_it_be_decided_again() {
    let decisions = [
        ApprovalDecision::ApproveEdited(r#"{"to":8}"#.to_owned()),
        ApprovalDecision::Approve,
        ApprovalDecision::Deny(None),
        ApprovalDecision::Respond("3".to_owned()),
    ];
    for first in decisions {
        let rig = rig();
        let store = Arc::new(MemoryStore::with_limits(1, 8));
        let runner = rig.process(Arc::clone(&store) as _, ASKS);
        let saved = suspended(&runner).await;
        let result = runner.run(ada()).resume_shown("c", first.clone(), &tests::grace()).await.expect("it waits");
        assert!(matches!(result.outcome(), Outcome::Ok | Outcome::ApprovalDenied), "{first:?}");
        crowd_out(&runner).await;
        let filter = RecordFilter::call("run-1", CallId::new("c"));
        assert!(store.records(&filter).await.expect("records").is_empty(), "the store has forgotten it");
        let before = rig.effects();
        let run = runner.restore(moved(&saved), ada()).await.expect("a run");
        let error =
            run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect_err("it was decided");
        assert_eq!((error.code(), rig.effects()), ("not_pending", before), "{first:?}");
    }
}

#[tokio::test]
async fn a_snapshot_that_is_restored_twice_is_decided_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("store.db"), SqlOptions::new()).await.expect("a store");
    let stores: [Arc<dyn Store>; 3] =
        [Arc::new(MemoryStore::new()), Arc::new(MemoryStore::with_limits(1, 8)), Arc::new(sqlite)];
    for (at, store) in stores.into_iter().enumerate() {
        let rig = rig();
        let runner = || rig.process(Arc::clone(&store), ASKS);
        // The call is suspended over another store, so that this one has only the copies.
        let saved = suspended(&rig.process(Arc::new(MemoryStore::new()), ASKS)).await;
        let (one, two) = (runner().restore(moved(&saved), ada()).await, runner().restore(moved(&saved), ada()).await);
        let (one, two) = (one.expect("a run"), two.expect("a run"));
        let edited = ApprovalDecision::ApproveEdited(r#"{"to":8}"#.to_owned());
        let result = one.resume_shown("c", edited, &tests::grace()).await.expect("it waits");
        assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1), "{at}");
        crowd_out(&runner()).await;
        let before = rig.effects();
        let third = runner().restore(moved(&saved), ada()).await.expect("a run");
        for run in [two, third] {
            let error = run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect_err("decided");
            assert_eq!((error.code(), rig.effects()), ("not_pending", before), "{at}");
        }
    }
}

/// A call that a process suspends after it took a run over also waits in the process that takes the run back.
#[tokio::test]
async fn a_run_that_comes_back_brings_what_is_new() {
    let rig = rig();
    let (here, there) = (MemoryStore::new(), MemoryStore::new());
    let (here, there) = (rig.process(Arc::new(here), ASKS), rig.process(Arc::new(there), ASKS));
    let saved = suspended(&here).await;
    let run = there.restore(moved(&saved), ada()).await.expect("a run");
    assert_eq!(run.exec(change_call("d")).await.outcome(), Outcome::ApprovalRequired);
    let both = run.snapshot().await.expect("a snapshot");
    // Decided here meanwhile.
    here.run(ada()).resume_shown("c", ApprovalDecision::Deny(None), &tests::grace()).await.expect("it waits");
    let back = here.restore(moved(&both), ada()).await.expect("a run");
    let decide = async |id| {
        let decided = back.resume_shown(id, ApprovalDecision::Approve, &tests::grace()).await;
        decided.map(|result| result.outcome()).map_err(|error| error.code())
    };
    assert_eq!((decide("c").await, decide("d").await), (Err("not_pending"), Ok(Outcome::Ok)));
}

/// Replaced arguments run in no other process, not even in one whose policy requires no approval.
#[tokio::test]
async fn a_call_that_was_edited_does_not_run_unedited_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqlStore::sqlite(folder.path().join("store.db"), SqlOptions::new()).await.expect("a store");
    let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::new()), Arc::new(sqlite)];
    for store in stores {
        for lax in [true, false] {
            let rig = rig();
            let asks = rig.process(Arc::clone(&store), ASKS);
            let id = format!("run {lax}");
            let run = asks.run(ada().run_id(id.as_str()));
            assert_eq!(run.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired);
            let other = rig.process(Arc::clone(&store), if lax { OPEN } else { ASKS }).run(ada().run_id(id.as_str()));
            assert_eq!(other.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired, "it waits");
            let edited = ApprovalDecision::ApproveEdited(r#"{"to":8}"#.to_owned());
            let decided = run.resume_shown("c", edited, &tests::grace()).await.expect("it waits");
            assert_eq!((decided.outcome(), rig.effects()), (Outcome::Ok, 1));
            let other = rig.process(Arc::clone(&store), if lax { OPEN } else { ASKS }).run(ada().run_id(id.as_str()));
            let again = other.exec(change_call("c")).await;
            assert_eq!((again.outcome(), rig.effects()), (Outcome::Ok, 1), "{lax}");
            assert_eq!(again.to_model(), decided.to_model());
        }
    }
}
