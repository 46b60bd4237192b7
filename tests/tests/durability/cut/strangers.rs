//! Run ids and call ids can be guessed: calls of others with the same ids are neither visible nor affected.

use tests::Shown as _;
use tool_runtime::call::Decider;
use tool_runtime::runner::ApprovalDecision;

use super::*;

/// Strangers, and who decides for them.
fn strangers() -> [(RunOptions, Decider); 3] {
    let of = |principal: &str| RunOptions::new().run_id("run-1").principal(principal);
    [
        (of("eve"), tests::grace()),
        (of("ada").tenant("other"), tests::grace().tenant("other")),
        (RunOptions::new().run_id("run-1"), tests::grace()),
    ]
}

/// A stranger's view of a call: the model's text, the outcome, and the recorded outcome.
async fn seen(run: &Run, call: ToolCall) -> (String, Outcome, Vec<Outcome>) {
    let result = run.exec(call).await;
    let id = result.call_id().clone();
    let own = run.recorded(&id).await.expect("a store").map(|result| result.outcome());
    (result.to_model(), result.outcome(), own.into_iter().collect())
}

#[tokio::test]
async fn a_stranger_sees_the_same_whether_there_is_a_call_or_not() {
    for policy in [OPEN, ASKS] {
        for (options, _) in strangers() {
            let (with, without) = (Rig::new(), Rig::new());
            let ours = with.run(policy).exec(change_call("c")).await;
            let theirs = with.process(Arc::clone(&with.store) as _, policy).run(options.clone());
            let alone = without.process(Arc::clone(&without.store) as _, policy).run(options);
            let (theirs, alone) = (seen(&theirs, change_call("c")).await, seen(&alone, change_call("c")).await);
            assert_eq!(theirs, alone, "{policy}");
            assert!(ours.is_ok() || ours.outcome() == Outcome::ApprovalRequired);
        }
    }
}

#[tokio::test]
async fn a_stranger_who_came_first_stops_nobody() {
    for (options, decider) in strangers() {
        let rig = Rig::new();
        let theirs = rig.process(Arc::clone(&rig.store) as _, ASKS).run(options);
        assert_eq!(theirs.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired);
        assert_eq!(theirs.exec(client_call("d")).await.outcome(), Outcome::ApprovalRequired);
        let run = rig.run(ASKS);
        assert_eq!(run.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired, "it waits all the same");
        // Whatever they do with theirs, ours waits.
        theirs.abandon("c").await.expect("it waits");
        let result = run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
        assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1));
        // Our call has not affected theirs.
        let decided = theirs.resume_shown("d", ApprovalDecision::Deny(None), &decider).await.expect("it waits");
        assert_eq!(decided.outcome(), Outcome::ApprovalDenied);
    }
}

/// A call that a stranger began is not ours, whether it ended or not.
#[tokio::test]
async fn what_a_stranger_began_is_not_ours() {
    for (options, _) in strangers() {
        let rig = Rig::new();
        let theirs = rig.process(Arc::clone(&rig.store) as _, OPEN).run(options);
        let mut call = Box::pin(theirs.exec(ToolCall::text("c", "cut__stuck", r#"{"number":1}"#)));
        let _ = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        std::mem::forget(call);
        assert!(rig.run(OPEN).recorded(&CallId::new("c")).await.expect("a store").is_none());
        let ours = rig.run(OPEN).exec(change_call("c")).await;
        assert_eq!((ours.outcome(), rig.effects()), (Outcome::Ok, 1));
    }
}
