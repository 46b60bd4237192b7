//! Effects: the script waits with its call, and is run again from its beginning after the decision.

use tool_runtime::call::{Decider, Suspension};
use tool_runtime::runner::{ApprovalDecision, Run};
use tool_runtime::store::{PendingFilter, Store};
use tool_runtime::{Outcome, ToolExecResult};

use crate::{Rig, call, code, options};

const SCRIPT: &str = "let all = notes__list(); let done = [];
for note in all { try { done.push(notes__delete(#{ number: note })); } catch (e) { done.push(e.errorCode); } }
#{ done: done, again: notes__list() }";

fn with_effects() -> tool_runtime::agent::CodeMode {
    code().tools(["notes__list", "notes__delete"]).effects()
}

async fn decide(run: &Run, decision: ApprovalDecision) -> ToolExecResult {
    run.resume("c1", decision, &Decider::new("grace").tenant("acme")).await.expect("it waits")
}

fn done(result: &ToolExecResult) -> String {
    crate::read(&result.to_model())["value"]["done"].to_string()
}

/// The policy asks for no approval; the script waits all the same, and cannot catch that.
#[tokio::test]
async fn each_effect_waits_for_a_person() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    let result = run.exec(call(SCRIPT)).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::ApprovalRequired, 0));
    let pending = rig.store.pending_calls(&PendingFilter::default()).await.expect("pending calls");
    let graph = pending.iter().find_map(|call| call.graph.as_ref()).expect("the script waits");
    assert_eq!(graph.path, "code > notes__delete");
    assert_eq!(graph.shown_arguments.as_ref().expect("arguments").get(), r#"{"number":7}"#);
    assert_eq!(pending.iter().filter(|call| call.suspension == Suspension::Approval).count(), 2);

    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::ApprovalRequired, 1));
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((done(&result).as_str(), rig.effects()), ("[7,8]", 2));
    let names: Vec<_> = rig.calls().await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["notes__list", "notes__delete", "notes__delete", "notes__list"], "one record for each call");
}

#[tokio::test]
async fn a_denial_is_a_failure_that_the_script_reads() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    run.exec(call(SCRIPT)).await;
    decide(&run, ApprovalDecision::Deny(None)).await;
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((done(&result).as_str(), rig.effects()), (r#"["approval_denied",8]"#, 1));
}

/// Another process has the store and the run's snapshot only.
#[tokio::test]
async fn a_script_continues_in_another_process() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    run.exec(call(SCRIPT)).await;
    let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
    drop(run);
    let snapshot = serde_json::from_str(&snapshot).expect("a snapshot");
    let run = rig.runner("", with_effects()).restore(snapshot, options()).await.expect("a run");
    decide(&run, ApprovalDecision::Approve).await;
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((done(&result).as_str(), rig.effects()), ("[7,8]", 2));
}

/// A script that is given up leaves no call that waits, and what it began is not known to have done nothing.
#[tokio::test]
async fn a_script_that_is_abandoned_leaves_nothing() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    run.exec(call(SCRIPT)).await;
    decide(&run, ApprovalDecision::Approve).await;
    let result = run.abandon("c1").await.expect("it waits");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 1));
    assert!(rig.store.pending_calls(&PendingFilter::default()).await.expect("pending calls").is_empty());
}
