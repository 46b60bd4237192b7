//! Calls that end late: a call ends after a person settled the earlier call with its key, and a second attempt fails
//! although the first one may have had the effect.

use std::sync::Arc;
use std::time::Duration;

use tool_runtime::agent::CodeMode;
use tool_runtime::call::{CallId, Decider};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{MemoryStore, RecordFilter};
use tool_runtime::{Outcome, Reconciled, Run, ToolCall, ToolCatalog};

use super::{Rig, call, of};

/// A person approved a second call although the first one's outcome is unknown, and states while it runs that the first
/// one took effect. The second call fails: the effect still counts as done.
#[tokio::test]
async fn what_a_person_states_while_a_second_call_runs_is_kept() {
    let rig = Rig::new();
    let run = rig.run("run-1", "ada");
    let running = rig.shared.stuck(run.exec(call("once__refund", "c1"))).await;
    run.cancel();
    running.await.expect("it ends");
    let failing = ToolCall::text("c1", "once__refund", r#"{"payment_id":"p-1","note":"fail"}"#);
    let second = rig.run("run-2", "ada");
    let asked = second.exec(failing).await;
    let question = asked.question().expect("a question").clone();
    let grace = Decider::new("grace").tenant("acme");
    let by = grace.clone();
    let approve = async move { second.resume(&question, ApprovalDecision::Approve, &by).await.expect("it is decided") };
    let running = rig.shared.stuck(approve).await;
    let paid = Reconciled::TookEffect("\"7 of p-1\"".to_owned());
    let settled = run.settle(&CallId::new("c1"), paid, &grace).await.expect("it is settled");
    assert_eq!(settled.outcome(), Outcome::Ok);
    rig.shared.open(9);
    running.await.expect("it ends");
    let records = rig.shared.closed().await;
    let outcome = |run: &str| records.iter().find(|record| *record.run_id == *run).map(|record| record.outcome);
    assert_eq!(outcome("run-2"), Some(Outcome::ExecutionError));
    let third = rig.call(("run-3", "ada"), "once__refund", "c1").await;
    assert_eq!((third.outcome(), third.executed()), (Outcome::Ok, false), "{}", third.to_model());
    assert_eq!(third.earlier_call(), Some(("run-1", &CallId::new("c1"))));
    assert_eq!(rig.shared.effects(), 2);
}

/// The tool states that its second attempt had no effect. The first attempt, whose process is gone, may have had it.
#[tokio::test]
async fn a_failed_second_attempt_does_not_free_the_key() {
    let rig = Rig::new();
    let send = |id: &str| ToolCall::text(id, "once__send", r#"{"payment":"p-1"}"#);
    std::mem::forget(rig.shared.stuck(rig.run("run-1", "ada").exec(send("c1"))).await);
    rig.shared.clock.advance(Duration::from_secs(31));
    rig.shared.open(9);
    let again = rig.run("run-1", "ada").recover(&CallId::new("c1")).await.expect("a store").expect("it began");
    assert_eq!((again.outcome(), rig.shared.effects()), (Outcome::OutcomeUnknown, 2), "{}", again.to_model());
    let records = rig.shared.closed().await;
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [Outcome::OutcomeUnknown]);
    let third = rig.run("run-2", "ada").exec(send("c2")).await;
    assert_eq!((third.outcome(), rig.shared.effects()), (Outcome::ApprovalRequired, 2), "{}", third.to_model());
    // A first attempt that fails frees it, as usual.
    let other = ToolCall::text("d1", "once__send", r#"{"payment":"p-2"}"#);
    assert_eq!(rig.run("run-2", "ada").exec(other).await.outcome(), Outcome::ExecutionError);
    assert_eq!(rig.effects().await, 1);
}

/// A key of a run holds in its graphs and scripts, too: they belong to the run that calls them.
#[tokio::test]
async fn a_key_of_a_run_holds_in_its_scripts() {
    let rig = Rig::new();
    let code = CodeMode::new("code", "1").tools(["once__report"]).effects();
    let catalog = ToolCatalog::builder().collect().dynamic(code).build().expect("a catalog");
    let policy = "allowed_tools = ['once__report']\nallowed_graphs = ['code']";
    let runner = rig.shared.start_with(catalog, Arc::clone(&rig.shared.store) as _, policy, rig.capabilities());
    let script = async |run: &Run, id: &str| {
        let waits = run.exec(ToolCall::text(id, "graph__code", r#"{"script":"once__report()"}"#)).await;
        // A script asks for each effect that did not happen yet.
        let Some(question) = waits.question().cloned() else { return waits };
        let grace = Decider::new("grace").tenant("acme");
        run.resume(&question, ApprovalDecision::Approve, &grace).await.expect("it is decided")
    };
    let run = runner.run(of("run-1", "ada"));
    assert!(run.exec(ToolCall::text("c1", "once__report", "{}")).await.executed());
    let inside = script(&run, "c2").await;
    assert!(tests::pending_calls(&*rig.shared.store, &RecordFilter::default()).await.is_empty(), "no question");
    assert_eq!((inside.outcome(), rig.shared.effects()), (Outcome::Ok, 1), "{}", inside.to_model());
    // A script of another run has the effect, and holds the key for its whole run.
    let other = runner.run(of("run-2", "ada"));
    assert_eq!((script(&other, "c1").await.outcome(), rig.shared.effects()), (Outcome::Ok, 2));
    assert_eq!(script(&other, "c2").await.outcome(), Outcome::Ok);
    assert!(!other.exec(ToolCall::text("c3", "once__report", "{}")).await.executed());
    assert_eq!(rig.shared.effects(), 2);
}

/// A bounded store forgets ended calls, but no effect key.
#[tokio::test]
async fn a_full_store_in_memory_forgets_no_key() {
    let rig = Rig::new();
    rig.shared.open(99);
    let runner = rig.process_on(Arc::new(MemoryStore::with_limits(4, 4)));
    let run = runner.run(of("run-1", "ada"));
    assert!(run.exec(call("once__refund", "c1")).await.executed());
    for at in 0..20 {
        let arguments = format!(r#"{{"payment_id":"q-{at}"}}"#);
        let tool = if at % 2 == 0 { "once__control" } else { "once__refund" };
        assert_eq!(run.exec(ToolCall::text(format!("d{at}"), tool, arguments)).await.outcome(), Outcome::Ok, "{at}");
    }
    let again = run.exec(call("once__refund", "c2")).await;
    assert_eq!((again.outcome(), again.executed(), rig.shared.effects()), (Outcome::Ok, false, 21));
}
