//! Futures that are dropped at every poll.

use tests::Shown as _;
use tool_runtime::runner::ApprovalDecision;

use super::*;

/// Drops the future that finishes a call, at each of its polls in turn. Then takes the call to its end, and checks it
/// in between.
async fn at_every_poll<F: Future>(
    what: &str,
    id: &str,
    policy: &str,
    before: impl AsyncFn(&Rig),
    cut: impl Fn(Run) -> F,
    after: impl AsyncFn(&Rig),
) {
    for times in 1..200 {
        let rig = Rig::new();
        before(&rig).await;
        let run = rig.hooked(policy, late);
        let ended = polled(times, cut(run.clone())).await;
        settle().await;
        let what = format!("{what}, {times} polls");
        rig.check(id, &what).await;
        let told = rig.ends();
        assert!(told < 2, "{what}: told {told} times");
        let (closed, waits) = (rig.closed(id).await, rig.waits(id).await);
        // A caller that drops a future learns no more of it, so the record must not wait for a request.
        assert_eq!(closed.len() + usize::from(waits), 1, "{what}: it has a record, or waits");
        if closed.iter().any(|record| record.outcome == Outcome::Cancelled) {
            assert_eq!(rig.effects(), 0, "{what}: it did not run");
        }
        let booked = rig.booked().await;
        let used = closed.iter().filter(|record| record.executed).count() as u64;
        assert!(booked.is_none_or(|booked| booked == used), "{what}: {booked:?} booked, {used} used");
        after(&rig).await;
        rig.clock.advance(Duration::from_mins(1));
        drop(rig.run(policy).recorded(&CallId::new(id)).await.expect("a store"));
        settle().await;
        rig.check(id, &format!("{what}, afterwards")).await;
        assert_eq!(rig.closed(id).await.len(), 1, "{what}: it has a record");
        assert!(rig.effects() < 2, "{what}");
        if ended {
            return;
        }
    }
    panic!("{what} never ends");
}

async fn suspended(rig: &Rig, policy: &str, call: ToolCall) {
    let result = rig.run(policy).exec(call).await;
    assert!(result.outcome().is_suspension(), "{:?}", result.outcome());
}

#[tokio::test]
async fn a_call_that_runs() {
    let again = async |rig: &Rig| drop(rig.run(OPEN).exec(change_call("c")).await);
    at_every_poll("exec", "c", OPEN, async |_| {}, |run| async move { run.exec(change_call("c")).await }, again).await;
}

/// The booking of a call that did not run is given back.
#[tokio::test]
async fn a_call_that_is_booked_on_an_account() {
    let counted = format!("{OPEN}\nbudgets.principal = {{ window = '1d', calls = 9 }}");
    let exec = |run: Run| async move { run.exec(change_call("c")).await };
    let again = async |rig: &Rig| drop(rig.run(OPEN).exec(change_call("c")).await);
    at_every_poll("exec", "c", &counted, async |_| {}, exec, again).await;
    let counted = format!("{ASKS}\nbudgets.principal = {{ window = '1d', calls = 9 }}");
    let before = async |rig: &Rig| suspended(rig, &counted, change_call("c")).await;
    let approve = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await };
    let again = async |rig: &Rig| {
        drop(rig.run(&counted).resume_shown("c", ApprovalDecision::Deny(None), &tests::grace()).await);
    };
    at_every_poll("approve", "c", &counted, before, approve, again).await;
}

#[tokio::test]
async fn a_call_that_is_suspended() {
    let decide = async |rig: &Rig| {
        let run = rig.run(ASKS);
        if rig.waits("c").await {
            let result = run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
            assert_eq!(result.outcome(), Outcome::Ok);
        }
    };
    at_every_poll("suspend", "c", ASKS, async |_| {}, |run| async move { run.exec(change_call("c")).await }, decide)
        .await;
}

#[tokio::test]
async fn a_call_that_is_handed_out() {
    let answer = async |rig: &Rig| {
        if rig.waits("c").await {
            let result = rig.run(OPEN).client_result("c", "\"done\"").await.expect("it waits");
            assert_eq!(result.outcome(), Outcome::Ok);
        }
    };
    at_every_poll("hand out", "c", OPEN, async |_| {}, |run| async move { run.exec(client_call("c")).await }, answer)
        .await;
}

#[tokio::test]
async fn a_call_that_is_approved() {
    let before = async |rig: &Rig| suspended(rig, ASKS, change_call("c")).await;
    let again = async |rig: &Rig| {
        drop(rig.run(ASKS).resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await);
    };
    let approve = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await };
    at_every_poll("approve", "c", ASKS, before, approve, again).await;
}

#[tokio::test]
async fn a_call_that_is_approved_and_handed_out() {
    let before = async |rig: &Rig| suspended(rig, ASKS, client_call("c")).await;
    let again = async |rig: &Rig| {
        drop(rig.run(ASKS).resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await);
        if rig.waits("c").await {
            let result = rig.run(ASKS).client_result("c", "\"done\"").await.expect("it waits");
            assert_eq!(result.outcome(), Outcome::Ok);
        }
    };
    let approve = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await };
    at_every_poll("approve a client's", "c", ASKS, before, approve, again).await;
}

#[tokio::test]
async fn a_call_that_is_denied_answered_or_abandoned() {
    let before = async |rig: &Rig| suspended(rig, ASKS, change_call("c")).await;
    let again = async |rig: &Rig| drop(rig.run(ASKS).abandon("c").await);
    let deny = |run: Run| async move { run.resume_shown("c", ApprovalDecision::Deny(None), &tests::grace()).await };
    at_every_poll("deny", "c", ASKS, before, deny, again).await;
    let respond = |run: Run| async move {
        let answer = ApprovalDecision::Respond("3".to_owned());
        run.resume_shown("c", answer, &tests::grace()).await
    };
    at_every_poll("respond", "c", ASKS, before, respond, again).await;
    at_every_poll("abandon", "c", ASKS, before, |run: Run| async move { run.abandon("c").await }, again).await;
    at_every_poll("expire", "c", ASKS, before, |run: Run| async move { run.expire_shown("c").await }, again).await;
}

#[tokio::test]
async fn a_call_whose_client_answers() {
    let before = async |rig: &Rig| suspended(rig, OPEN, client_call("c")).await;
    let again = async |rig: &Rig| drop(rig.run(OPEN).client_result("c", "\"done\"").await);
    let answer = |run: Run| async move { run.client_result("c", "\"done\"").await };
    at_every_poll("answer", "c", OPEN, before, answer, again).await;
    at_every_poll("fail", "c", OPEN, before, |run: Run| async move { run.client_failed("c").await }, again).await;
    at_every_poll("abandon", "c", OPEN, before, |run: Run| async move { run.abandon("c").await }, again).await;
}
