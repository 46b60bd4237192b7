//! A call expires between the comparison of a decision and the transaction that carries it out. The time of the
//! transaction decides.

use std::sync::atomic::AtomicBool;

use tests::world::{HookAction, HookedStore};

use super::*;

/// How long the store of the decider takes for its next write.
const PAUSE: Duration = Duration::from_hours(48);

/// A process whose next write arrives after the call has expired, as if the process had been stopped meanwhile.
fn stopped(rig: &Rig, rules: &str) -> Run {
    let (clock, is_next) = (Arc::clone(&rig.shared.clock), AtomicBool::new(true));
    let store = HookedStore::new(Arc::clone(&rig.shared.store) as _, move |method| {
        if method == "update" && is_next.swap(false, Ordering::AcqRel) {
            clock.advance(PAUSE);
        }
        HookAction::Pass
    });
    rig.process_over(Arc::new(store), rules).run(of("run-1"))
}

async fn waits(rig: &Rig) -> bool {
    !tests::pending_calls(&*rig.shared.store, &RecordFilter::default()).await.is_empty()
}

#[tokio::test]
async fn an_approved_call_does_not_begin_after_it_expired() {
    // The comparison with the world is a separate write if the world has changed.
    for balance in [120, 90] {
        let rig = Rig::new();
        let question = asked(&rig.run().exec(call("world__pay")).await);
        rig.accounts.set(balance);
        let ended = approve(&stopped(&rig, ASKS), &question).await;
        assert_eq!((ended.outcome(), ended.executed()), (Outcome::ApprovalExpired, false));
        assert_eq!((rig.shared.effects(), waits(&rig).await), (0, false));
        let decisions = rig.decisions().await;
        let [decision] = &*decisions else { panic!("{decisions:?}") };
        assert_eq!((decision.decision, decision.mismatch()), (DecisionKind::TooLate, None));
        let records = rig.shared.closed().await;
        assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [Outcome::ApprovalExpired]);
    }
}

#[tokio::test]
async fn neither_an_answer_nor_one_of_several_approvals_counts() {
    let two = format!("{ASKS}\n[approvals]\nrequired = 2\n");
    let rig = Rig::new();
    let question = asked(&rig.process(&two).run(of("run-1")).exec(call("world__pay")).await);
    let ended = approve(&stopped(&rig, &two), &question).await;
    assert_eq!((ended.outcome(), ended.approvals(), waits(&rig).await), (Outcome::ApprovalExpired, None, false));
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__close")).await);
    let given = stopped(&rig, ASKS).resume(&question, ApprovalDecision::Respond("7".into()), &grace()).await;
    assert!(matches!(given, Err(ResumeError::NotWaiting(_))), "{given:?}");
    let decisions = rig.decisions().await;
    let [decision] = &*decisions else { panic!("{decisions:?}") };
    assert_eq!((decision.decision, decision.mismatch()), (DecisionKind::TooLate, Some(DecisionError::NotPending)));
    assert_eq!(rig.run().expire(&question).await.expect("it waits").outcome(), Outcome::ApprovalExpired);
}

#[tokio::test]
async fn no_grant_is_made() {
    let rig = Rig::new();
    let question = asked(&rig.run().exec(call("world__pay")).await);
    let grant = Grant::allow(GrantScope::Principal).any_arguments();
    let granted = stopped(&rig, ASKS).remember(&question, grant, &grace()).await;
    assert!(matches!(granted, Err(ResumeError::NotWaiting(_))), "{granted:?}");
    assert!(rig.process(ASKS).grants(Some("acme")).await.expect("grants").is_empty());
}
