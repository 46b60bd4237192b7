//! A settlement by a person of another tenant, at every entry point: the answer is the same as for a call that does not
//! exist, and the attempt is reported to operators.

use std::sync::Mutex;

use tool_runtime::call::DecisionError;
use tool_runtime::runner::Failure;
use tool_runtime::{ToolCatalog, ToolPolicy};

use super::*;

/// The failures that operators read: code, tool, call and run.
type Told = Arc<Mutex<Vec<[String; 4]>>>;

/// A process that reports its failures.
fn reporting(rig: &Rig) -> (ToolRunner, Told) {
    let told = Told::default();
    let sink = Arc::clone(&told);
    let failed = move |failure: &Failure<'_>| {
        let call = failure.call_id.map_or("", CallId::as_str);
        let ids = [failure.code, failure.tool.unwrap_or(""), call, failure.run_id.unwrap_or("")];
        sink.lock().expect("a list").push(ids.map(str::to_owned));
    };
    let policy = ToolPolicy::from_toml("allowed_tools = ['settled__pay', 'settled__once']").expect("a policy");
    let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy)
        .capabilities(rig.capabilities())
        .approvals(true)
        .clock(Arc::clone(&rig.shared.clock))
        .store(Arc::clone(&rig.shared.store))
        .failures(failed)
        .build()
        .expect("a runner");
    (runner, told)
}

/// Settles at one of the doors. Returns the code and the text of the refusal.
async fn refusal(runner: &ToolRunner, door: &str, id: &str, stranger: &Decider) -> (&'static str, String) {
    let (id, queue) = (CallId::new(id), RunQueue::new(runner));
    let (theirs, outcome) = (RunOptions::new().run_id("run-1").principal("eve"), Reconciled::Prevented);
    let error = match door {
        "run" => runner.run(theirs.principal("ada").tenant("acme")).settle(&id, outcome, stranger).await,
        "run of the tenant" => {
            let theirs =
                stranger.tenant_id().into_iter().fold(theirs, |theirs, tenant| theirs.tenant(tenant.to_owned()));
            runner.run(theirs).settle(&id, outcome, stranger).await
        }
        "queue" => queue.settle("run-1", Some("acme"), Some("ada"), &id, outcome, stranger).await,
        "queue: another principal" => queue.settle("run-1", Some("acme"), Some("eve"), &id, outcome, stranger).await,
        "queue of the tenant" => queue.settle("run-1", stranger.tenant_id(), Some("eve"), &id, outcome, stranger).await,
        _ => panic!("{door}"),
    };
    let error = error.expect_err(door);
    (error.code(), error.to_string())
}

const DOORS: [&str; 5] = ["run", "run of the tenant", "queue", "queue: another principal", "queue of the tenant"];

/// Why the settlements of a call were refused.
async fn refused(rig: &Rig) -> Vec<Option<DecisionError>> {
    let decisions = records(&rig.shared.store).await;
    decisions.iter().filter(|decision| decision.refused().is_some()).map(DecisionRecord::mismatch).collect()
}

#[tokio::test]
async fn a_settlement_of_another_tenant_is_reported_at_every_door() {
    for door in DOORS {
        for stranger in [Decider::new("grace"), Decider::new("grace").tenant("other")] {
            let rig = Rig::new();
            rig.unknown("run-1", "settled__once", "c1").await;
            let (runner, told) = reporting(&rig);
            let known = refusal(&runner, door, "c1", &stranger).await;
            let reported = told.lock().expect("a list").clone();
            assert_eq!(reported, [["decider_tenant", "settled__once", "c1", "run-1"].map(str::to_owned)], "{door}");
            assert_eq!(refused(&rig).await, [Some(DecisionError::DeciderTenant)], "{door}");

            // A call that does not exist gets the same answer, and is not reported.
            let unknown = refusal(&runner, door, "c2", &stranger).await;
            assert_eq!(known, unknown, "{door}");
            assert!(known.0 == "not_pending" && !known.1.contains("tenant"), "{door}: {known:?}");
            assert_eq!(told.lock().expect("a list").len(), 1, "{door}");

            // Ids can be guessed: each attempt is reported, and the records are bounded.
            for _ in 0..20 {
                refusal(&runner, door, "c1", &stranger).await;
            }
            assert_eq!(told.lock().expect("a list").len(), 21, "{door}");
            assert_eq!(refused(&rig).await.len(), 16, "{door}");
            assert_eq!(
                rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await,
                Ok(Outcome::Cancelled),
                "{door}"
            );
            // A stranger does not learn of a settled outcome either, and the attempt is not reported any more.
            assert_eq!(refusal(&runner, door, "c1", &stranger).await, unknown, "{door}");
            assert_eq!(told.lock().expect("a list").len(), 21, "{door}");
        }
    }
}

/// Two tenants have runs and calls of the same ids. A person who settles the call of their own tenant twice did not
/// attempt to settle the other one.
#[tokio::test]
async fn equal_ids_of_two_tenants_are_not_mixed_up() {
    let rig = Rig::new();
    rig.unknown("run-1", "settled__once", "c1").await;
    let (runner, told) = reporting(&rig);
    let own = runner.run(RunOptions::new().run_id("run-1").principal("ada").tenant("other"));
    let running = rig.shared.stuck(own.exec(call("settled__once", "c1"))).await;
    own.cancel();
    running.await.expect("it ends");
    let before = told.lock().expect("a list").len();
    let (id, grace) = (CallId::new("c1"), Decider::new("grace").tenant("other"));
    let settled = own.settle(&id, Reconciled::Prevented, &grace).await.expect("their own");
    assert_eq!(settled.outcome(), Outcome::Cancelled);
    assert_eq!(own.settle(&id, Reconciled::Prevented, &grace).await.expect_err("twice").code(), "not_pending");
    let twice =
        RunQueue::new(&runner).settle("run-1", Some("other"), Some("ada"), &id, Reconciled::Prevented, &grace).await;
    assert_eq!(twice.expect_err("twice").code(), "not_pending");
    assert_eq!(told.lock().expect("a list").len(), before);
    assert_eq!(refused(&rig).await, [Some(DecisionError::NotPending); 2]);
    // A person of the call's tenant who names another principal attempted nothing.
    let mistaken = RunQueue::new(&runner)
        .settle("run-1", Some("acme"), Some("eve"), &id, Reconciled::Prevented, &person("grace"))
        .await;
    assert_eq!(mistaken.expect_err("a mistake").code(), "not_pending");
    assert_eq!(told.lock().expect("a list").len(), before);
    assert_eq!(refused(&rig).await.len(), 2);
    assert_eq!(rig.settle("run-1", "c1", Reconciled::Prevented, "grace").await, Ok(Outcome::Cancelled));
}
