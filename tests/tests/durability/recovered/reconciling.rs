//! A `reconcile` that hangs, panics or dies itself, or during which the clock jumps.

use jiff::SignedDuration;
use tool_runtime::ToolCall;
use tool_runtime::call::{CallId, Decider};
use tool_runtime::store::Clock as _;

use super::*;

fn died(looks: Looks) -> Rig {
    let rig = Rig::new("keyed", Dies::After);
    *of(&rig.there.looks) = looks;
    let doomed = rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS));
    rig.dies(async move { drop(doomed.await) });
    rig
}

fn again(rig: &Rig) -> impl Future<Output = tool_runtime::ToolExecResult> + use<> {
    rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS))
}

/// A tool without its own limit gets that of the lease, so that no run is held forever.
#[test]
fn one_that_hangs_is_left_after_the_lease() {
    let rig = died(Looks::Hangs);
    rig.clock.advance(LEASE);
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let result = paused.expect("a runtime").block_on(async {
        let began = tokio::time::Instant::now();
        let result = again(&rig).await;
        assert_eq!(began.elapsed().as_secs(), LEASE.as_secs());
        result
    });
    assert_eq!(result.outcome(), Outcome::OutcomeUnknown);
    assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None));
}

#[test]
fn one_that_panics_leaves_the_outcome_unknown() {
    let rig = died(Looks::Panics);
    let result = rig.later(async { again(&rig).await });
    assert_eq!(result.outcome(), Outcome::OutcomeUnknown);
    assert!(!result.to_model().contains("CANARY"));
    assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None));
}

/// A person lets the tool look, as `outcomes settle --reconcile` does.
#[test]
fn one_that_a_person_asks_for_settles_the_call_only_if_it_answers() {
    let looks = [(Looks::Hangs, Outcome::OutcomeUnknown), (Looks::Panics, Outcome::OutcomeUnknown)];
    for (looks, expected) in looks.into_iter().chain([(Looks::Another, Outcome::Ok)]) {
        let rig = died(Looks::Panics);
        rig.later(async { drop(again(&rig).await) });
        of(&rig.there.looked).clear();
        *of(&rig.there.looks) = looks;
        let (queue, call) = (RunQueue::new(&rig.runner()), CallId::new("c"));
        let grace = Decider::new("grace").tenant("acme");
        let ask = async || queue.settle("run", Some("acme"), Some("ada"), &call, Reconciled::Unknown, &grace).await;
        let result = rig.later(ask()).expect("the tool is asked");
        assert_eq!((result.outcome(), rig.effects()), (expected, vec![1]), "{looks:?}");
        assert!(!result.to_model().contains("CANARY"), "{looks:?}");
        assert_eq!(rig.later(ask()).is_ok(), expected == Outcome::OutcomeUnknown, "{looks:?}");
    }
}

/// The process that reconciles dies too: the next one reconciles.
#[test]
fn one_that_dies_is_taken_over() {
    let rig = died(Looks::Dies);
    rig.clock.advance(LEASE);
    let second = again(&rig);
    rig.dies(async move { drop(second.await) });
    *of(&rig.there.looks) = Looks::Normally;
    rig.later(async { drop(again(&rig).await) });
    rig.holds("taken over twice", Dies::After);
}

/// While one process reconciles, another one that comes by leaves it alone.
#[test]
fn one_that_is_slow_is_not_taken_over() {
    let rig = died(Looks::Dies);
    rig.clock.advance(LEASE);
    let slow = again(&rig);
    rig.dies(async move { drop(slow.await) });
    *of(&rig.there.looks) = Looks::Normally;
    rig.clock.advance(LEASE / 2);
    let result = runtime().block_on(async { again(&rig).await });
    assert!(result.to_model().contains("still running in another process"), "{}", result.to_model());
    assert!(of(&rig.there.looked).is_empty());
    rig.later(async { drop(again(&rig).await) });
    rig.holds("after the slow one", Dies::After);
}

/// While a process looks, the clock of the store jumps by a day in both directions, and another process takes the call
/// over.
#[test]
fn one_during_which_the_clock_jumps_has_one_end() {
    for hours in [-24, 24] {
        let rig = died(Looks::Slowly);
        rig.clock.advance(LEASE);
        let due = rig.clock.now();
        let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        paused.expect("a runtime").block_on(async {
            let other = async {
                rig.there.died.notified().await;
                for hours in [hours, -hours] {
                    rig.clock.set(due + SignedDuration::from_hours(hours));
                    tokio::task::yield_now().await;
                }
                rig.clock.set(due + SignedDuration::from_hours(24));
                let result = again(&rig).await;
                rig.clock.set(due);
                result
            };
            let (one, other) = tokio::join!(again(&rig), other);
            // The one that lost the call may end before its record is there.
            assert!(matches!(one.outcome(), Outcome::Ok | Outcome::OutcomeUnknown), "{hours}: {one:?}");
            assert_eq!((other.outcome(), other.to_model().as_str()), (Outcome::Ok, "found rent"), "{hours}");
        });
        rig.holds("jumped", Dies::After);
    }
}
