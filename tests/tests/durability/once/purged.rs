//! An effect key outlives the run that had the effect: after a purge or an erasure there is still one effect.

use std::sync::Arc;
use std::time::Duration;

use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::{ResumeError, RunSnapshot};
use tool_runtime::store::{RecordFilter, Retention, RetentionReport, Store, StoreError, Verification};
use tool_runtime::{Outcome, ToolCall};
use tool_runtime_sql::{SqlOptions, SqlStore};

use super::{Rig, call, code, of};

const DAY: Duration = Duration::from_hours(24);

fn retention(store: &dyn Store) -> Retention<'_> {
    Retention::new(store, Decider::new("grace").because("The time to keep records is over."))
}

async fn purged(rig: &Rig, results: bool) -> RetentionReport {
    rig.shared.clock.advance(2 * DAY);
    retention(&*rig.shared.store).results(results).purge(DAY).await.expect("it purges")
}

async fn verified(store: &dyn Store) -> Verification {
    let verified = Verification::of_store(store, &[], |_| {}).await.expect("it is read");
    assert_eq!(verified.findings, []);
    verified
}

#[tokio::test]
async fn a_purged_effect_happens_once() {
    for results in [false, true] {
        let rig = Rig::new();
        rig.shared.open(9);
        assert_eq!(rig.call(("run-1", "ada"), "once__refund", "c1").await.outcome(), Outcome::Ok);
        let report = purged(&rig, results).await;
        assert_eq!((report.runs, report.records, report.documents), (1, 1, u64::from(results)));
        let again = rig.call(("run-2", "bob"), "once__refund", "c1").await;
        assert_eq!((again.executed(), rig.shared.effects()), (false, 1), "{}", again.to_model());
        if results {
            assert_eq!(again.outcome(), Outcome::Cancelled);
            assert!(again.to_model().contains("its result has been deleted"), "{}", again.to_model());
        } else {
            assert_eq!(again.earlier_call(), Some(("run-1", &CallId::new("c1"))));
            assert!(again.to_model().starts_with("7 of p-1"), "{}", again.to_model());
        }
        assert_eq!(verified(&*rig.shared.store).await.purged, 1);
    }
}

/// The ledger's entries of a purged run are gone, so the run itself begins nothing any more.
#[tokio::test]
async fn a_purged_run_begins_nothing() {
    let rig = Rig::new();
    rig.shared.open(9);
    let run = rig.run("run-1", "ada");
    assert!(run.exec(call("once__control", "c1")).await.executed());
    let snapshot: RunSnapshot = run.snapshot().await.expect("a snapshot");
    assert_eq!(purged(&rig, false).await.runs, 1);
    for (run, what) in [(run, "the process that had it"), (rig.run("run-1", "ada"), "another process")] {
        for id in ["c1", "c2"] {
            let refused = run.exec(call("once__control", id)).await;
            assert!(!refused.executed() || id == "c1", "{what}: {}", refused.to_model());
        }
    }
    assert_eq!(rig.shared.effects(), 1);
    let runner = rig.process_on(Arc::clone(&rig.shared.store) as _);
    let restored = runner.restore(snapshot, of("run-1", "ada")).await;
    assert!(matches!(restored, Err(ResumeError::Store(StoreError::RunPurged))));
    verified(&*rig.shared.store).await;
}

/// A call that only reads asks the ledger nothing. Its record is refused, and with it its result.
#[tokio::test]
async fn no_call_leaves_data_in_a_closed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let sql = SqlStore::sqlite(folder.path().join("closed.db"), SqlOptions::new()).await.expect("a store");
    let rig = Rig::new();
    let stores: [Arc<dyn Store>; 2] = [Arc::clone(&rig.shared.store) as _, Arc::new(sql)];
    for (store, erases) in stores.into_iter().flat_map(|store| [(Arc::clone(&store), true), (store, false)]) {
        let id = if erases { "erased" } else { "purged" };
        let run = rig.process_on(Arc::clone(&store)).run(of(id, "ada"));
        assert_eq!(run.exec(call("once__look", "c1")).await.outcome(), Outcome::Ok);
        let removed = if erases {
            retention(&*store).erase("ada", Some("acme")).await.expect("it erases")
        } else {
            rig.shared.clock.advance(2 * DAY);
            retention(&*store).run(id).purge(Duration::ZERO).await.expect("it purges")
        };
        assert_eq!((removed.runs, removed.records, removed.kept_runs), (1, 1, 0), "{id}");
        let before = store.records(&RecordFilter::run(id)).await.expect("records").len();
        let refused = ToolCall::text("c4", "once__look", "{}");
        let unknown = ToolCall::text("c5", "once__nothing", r#"{"name":"ada"}"#);
        for call in [call("once__look", "c2"), call("once__control", "c3"), refused, unknown] {
            let ended = run.exec(call).await;
            assert_eq!((ended.outcome(), code(&ended)), (Outcome::Cancelled, Some("run_purged")), "{id}");
            assert!(!ended.to_model().contains("secret"), "{}", ended.to_model());
        }
        let records = store.records(&RecordFilter::run(id)).await.expect("records");
        assert_eq!(records.len(), before, "{id}: nothing is recorded");
        let text = serde_json::to_string(&records).expect("JSON");
        assert!(!text.contains("\"ada\"") && !text.contains("secret") && !text.contains("p-1"), "{text}");
        verified(&*store).await;
    }
    assert_eq!(rig.shared.effects(), 0);
}

#[tokio::test]
async fn a_run_that_is_not_over_stays() {
    // A call that runs.
    let rig = Rig::new();
    let running = rig.shared.stuck(rig.run("run-1", "ada").exec(call("once__refund", "c1"))).await;
    let why = async |rig: &Rig| {
        let report = retention(&*rig.shared.store).run("run-1").purge(Duration::ZERO).await.expect("it purges");
        (report.runs, report.kept.first().map(|(_, why)| *why))
    };
    rig.shared.clock.advance(DAY);
    assert_eq!(why(&rig).await, (0, Some("in_progress")));
    rig.shared.open(9);
    running.await.expect("it ends");
    rig.shared.clock.advance(DAY);
    assert_eq!(why(&rig).await, (1, None));

    // A call whose outcome is unknown.
    let rig = Rig::new();
    let run = rig.run("run-1", "ada");
    let running = rig.shared.stuck(run.exec(call("once__refund", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    rig.shared.clock.advance(DAY);
    assert_eq!(why(&rig).await, (0, Some("unsettled")));
    let report = retention(&*rig.shared.store).erase("ada", Some("acme")).await.expect("it answers");
    assert_eq!((report.records, report.kept), (0, vec![("run-1".into(), "unsettled")]));
    // A call that waits, in another run.
    let asked = rig.call(("run-2", "bob"), "once__refund", "c1").await;
    assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
    let report = retention(&*rig.shared.store).erase("bob", Some("acme")).await.expect("it answers");
    assert_eq!(report.kept, [("run-2".into(), "in_progress")]);
}

/// Through a database, with another process and after a restart.
#[tokio::test]
async fn an_erased_principal_has_each_effect_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("once.db");
    let open = || async { Arc::new(SqlStore::sqlite(&path, SqlOptions::new()).await.expect("a store")) };
    let rig = Rig::new();
    rig.shared.open(9);
    let one = open().await;
    let run = rig.process_on(Arc::clone(&one) as _).run(of("run-1", "ada"));
    let secret = ToolCall::text("c1", "once__refund", r#"{"payment_id":"p-1","note":"a secret"}"#);
    assert!(run.exec(secret).await.executed());
    let report = retention(&*open().await).erase("ada", Some("acme")).await.expect("it erases");
    assert_eq!((report.runs, report.records, report.kept_runs), (1, 1, 0));
    let two = open().await;
    let again = rig.process_on(Arc::clone(&two) as _).run(of("run-2", "bob")).exec(call("once__refund", "c1")).await;
    assert_eq!((again.outcome(), rig.shared.effects()), (Outcome::Cancelled, 1), "{}", again.to_model());
    let there = rig.process_on(Arc::clone(&two) as _).run(of("run-1", "ada")).exec(call("once__control", "c2")).await;
    assert!(!there.executed(), "the erased run is closed");
    let records = two.records(&RecordFilter::run("run-1")).await.expect("records");
    assert!(records[0].record.is_erased() && records[0].record.tool() == "once__refund");
    assert_eq!(verified(&*two).await.erased, 1);
    two.flush().await.expect("it is stored");
}
