//! Stores that fail before or after they have written.

use tests::Shown as _;
use tool_runtime::ToolExecResult;
use tool_runtime::runner::{ApprovalDecision, ResumeError};
use tool_runtime::store::StoreError;

use super::*;

fn down() -> StoreError {
    StoreError::Unavailable("the disk is gone".into())
}

/// A hook for a store that fails at write `at`: after the write if `kept` is true, and before it otherwise.
fn fails(at: u32, kept: bool) -> impl Fn(&'static str) -> HookAction + Send + Sync {
    let writes = AtomicU32::new(0);
    move |method| match method {
        "update" | "append" if writes.fetch_add(1, Ordering::AcqRel) == at => {
            if kept {
                HookAction::Lost(down())
            } else {
                HookAction::Fail(down())
            }
        }
        _ => HookAction::Pass,
    }
}

/// Lets each write fail in turn while a call is finished, before and after the write, and checks the call.
async fn at_every_write<F: Future<Output = Result<ToolExecResult, ResumeError>>>(
    what: &str,
    policy: &str,
    before: Option<ToolCall>,
    cut: impl Fn(Run) -> F,
    after: impl AsyncFn(&Rig),
) {
    for at in 0..4 {
        for kept in [false, true] {
            let what = format!("{what}, write {at} fails, kept: {kept}");
            let rig = Rig::new();
            if let Some(call) = &before {
                let result = rig.run(policy).exec(call.clone()).await;
                assert!(result.outcome().is_suspension(), "{what}");
            }
            let result = cut(rig.hooked(policy, fails(at, kept))).await;
            settle().await;
            rig.check("c", &what).await;
            assert!(rig.ends() < 2, "{what}");
            if let Ok(result) = &result
                && rig.waits("c").await
            {
                let waits = result.outcome().is_suspension() || result.outcome() == Outcome::ApprovalMismatch;
                assert!(waits, "{what}: it waits, and the result says {:?}", result.outcome());
            }
            after(&rig).await;
            rig.clock.advance(Duration::from_mins(1));
            let known = rig.run(policy).recorded(&CallId::new("c")).await.expect("a store");
            rig.check("c", &format!("{what}, afterwards")).await;
            assert!(known.is_some() && rig.effects() < 2, "{what}");
            assert!(rig.closed("c").await.len() == 1 || !kept, "{what}: it has a record");
        }
    }
}

/// Finishes a call that still waits, as any other process would.
async fn finished(rig: &Rig, policy: &str) {
    let run = rig.run(policy);
    if rig.waits("c").await {
        drop(run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await);
    }
    if rig.waits("c").await {
        let result = run.client_result("c", "\"done\"").await.expect("it waits");
        assert_eq!(result.outcome(), Outcome::Ok);
    }
    assert!(!rig.waits("c").await);
}

#[tokio::test]
async fn a_call_is_executed() {
    let run = |run: Run| async move { Ok(run.exec(change_call("c")).await) };
    let again = async |rig: &Rig| drop(rig.run(OPEN).exec(change_call("c")).await);
    at_every_write("exec", OPEN, None, run, again).await;
}

#[tokio::test]
async fn a_call_is_suspended() {
    let run = |run: Run| async move { Ok(run.exec(change_call("c")).await) };
    at_every_write("suspend", ASKS, None, run, async |rig| finished(rig, ASKS).await).await;
    let run = |run: Run| async move { Ok(run.exec(client_call("c")).await) };
    at_every_write("hand out", OPEN, None, run, async |rig| finished(rig, OPEN).await).await;
}

#[tokio::test]
async fn a_call_is_approved() {
    let approve = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await };
    let again = async |rig: &Rig| finished(rig, ASKS).await;
    at_every_write("approve", ASKS, Some(change_call("c")), approve, again).await;
    at_every_write("approve a client's", ASKS, Some(client_call("c")), approve, again).await;
}

#[tokio::test]
async fn a_call_is_denied_answered_or_abandoned() {
    let again = async |rig: &Rig| finished(rig, ASKS).await;
    let deny = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Deny(None), &tests::grace()).await };
    at_every_write("deny", ASKS, Some(change_call("c")), deny, again).await;
    let abandon = |run: Run| async move { run.abandon("c").await };
    at_every_write("abandon", ASKS, Some(change_call("c")), abandon, again).await;
    let expire = |run: Run| async move { run.expire_shown("c").await };
    at_every_write("expire", ASKS, Some(change_call("c")), expire, again).await;
}

#[tokio::test]
async fn a_client_answers() {
    let again = async |rig: &Rig| finished(rig, OPEN).await;
    let answer = |run: Run| async move { run.client_result("c", "\"done\"").await };
    at_every_write("answer", OPEN, Some(client_call("c")), answer, again).await;
    let fail = |run: Run| async move { run.client_failed("c").await };
    at_every_write("fail", OPEN, Some(client_call("c")), fail, again).await;
    let abandon = |run: Run| async move { run.abandon("c").await };
    at_every_write("abandon", OPEN, Some(client_call("c")), abandon, again).await;
}
