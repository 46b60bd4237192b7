//! Calls whose process died and whose run no process continues: listed until a sweep closes them.

use jiff::SignedDuration;
use tests::Shown as _;
use tool_runtime::ToolCall;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::Clock as _;

use super::*;

pub(super) async fn open(rig: &Rig) -> Vec<(String, bool)> {
    let open = rig.dyn_store().unfinished_calls(&RecordFilter::default()).await.expect("a store");
    open.into_iter()
        .map(|call| call.expect("it reads"))
        .map(|call| (call.call_id.to_string(), call.is_abandoned))
        .collect()
}

/// A service lets calls run, and dies.
pub(super) fn deserted(tool: &'static str, dies: Dies) -> Rig {
    let rig = Rig { asks: true, ..Rig::new(tool, dies) };
    let run = rig.runner().run(ada());
    runtime().block_on(run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)));
    rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
    rig
}

/// A process without tools closes the calls that no tool can reconcile or repeat. It leaves the others for a week to a
/// process that has the tool.
#[test]
fn a_call_of_no_run_is_closed_when_its_lease_is_over() {
    for tool in TOOLS {
        let rig = died(tool, Dies::After);
        runtime().block_on(async {
            rig.dyn_store().sweep().await.expect("swept");
            rig.runner().sweep().await.expect("swept");
            assert_eq!(open(&rig).await, [("c".to_owned(), false)], "it may still run");
            rig.clock.advance(LEASE);
            assert_eq!(open(&rig).await, [("c".to_owned(), true)]);
            rig.dyn_store().sweep().await.expect("swept");
            assert_eq!(open(&rig).await.is_empty(), tool == "plain", "{tool}");
            rig.clock.advance(7 * 24 * 60 * 60 * Duration::from_secs(1));
            rig.dyn_store().sweep().await.expect("swept");
            assert!(open(&rig).await.is_empty());
        });
        assert_eq!(rig.ended(), (Outcome::OutcomeUnknown, Some("lost"), None), "{tool}");
    }
}

/// A service that let a call wait is gone for good. One sweep after the time to decide, and the call has its record; a
/// decision comes too late.
#[test]
fn a_waiting_call_of_no_run_expires() {
    let rig = Rig { asks: true, ..Rig::new("plain", Dies::After) };
    let run = rig.runner().run(ada());
    runtime().block_on(run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)));
    drop(run);
    let waits = async || tests::pending_calls(rig.dyn_store(), &RecordFilter::default()).await.len();
    runtime().block_on(async {
        rig.runner().sweep().await.expect("swept");
        assert_eq!(waits().await, 1, "it has its time");
        rig.clock.advance(2 * 24 * 60 * 60 * Duration::from_secs(1));
        rig.dyn_store().sweep().await.expect("swept");
        assert_eq!(waits().await, 1, "a process without the tool leaves it");
        rig.runner().sweep().await.expect("swept");
        rig.runner().sweep().await.expect("swept");
        assert_eq!(waits().await, 0);
    });
    assert_eq!(rig.ended().0, Outcome::ApprovalExpired);
    assert!(rig.effects().is_empty());
}

/// A process calls the gate by itself, and dies.
fn died(tool: &'static str, dies: Dies) -> Rig {
    let rig = Rig::new(tool, dies);
    let doomed = rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS));
    rig.dies(async move { drop(doomed.await) });
    rig
}

/// One sweep after the lease, and each call has its closed record; a process that continues the run finds the record,
/// and runs nothing again.
#[test]
fn a_call_that_nobody_approved_is_reconciled_or_repeated() {
    every(|rig, dies| {
        let rig = died(rig.tool, dies);
        rig.later(async {
            rig.runner().sweep().await.expect("swept");
            assert!(open(&rig).await.is_empty());
        });
        rig.holds("swept without an approval", dies);
        let (ended, effects) = (rig.ended(), rig.effects());
        rig.later(async {
            let result = rig.runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS)).await;
            assert_eq!(result.outcome(), ended.0, "the record answers");
        });
        assert_eq!((rig.ended(), rig.effects()), (ended, effects), "{}", rig.tool);
    });
}

/// The budget of the run does not keep the tool from running again: the call was counted when it began. A shared account
/// books each attempt.
#[test]
fn a_repeated_call_is_charged_to_its_run_once() {
    let rig = Rig::new("again", Dies::After);
    let policy = "allowed_tools = ['recovered__again']\n[budgets.principal]\nwindow = '1d'\ncalls = 2\ntime_ms = 60000\n\
                  [budgets.run]\ncalls = 1\ntime_ms = 60000\n[budgets.default]\nmax_runtime_ms = 1000";
    let runner = || {
        let policy = ToolPolicy::from_toml(policy).expect("a policy");
        rig.builder_of(policy).build().unwrap_or_else(|error| panic!("{error}"))
    };
    let doomed = runner().run(ada()).exec(ToolCall::text("c", rig.name(), ARGUMENTS));
    rig.dies(async move { drop(doomed.await) });
    rig.later(async { runner().sweep().await.expect("swept") });
    rig.holds("charged", Dies::After);
}

/// The ids in its arguments were proven when it began; the run of the sweep has seen none of them.
#[test]
fn evidence_is_not_asked_for_again() {
    for asks in [false, true] {
        let rig = Rig { asks, ..Rig::new("proven", Dies::After) };
        let run = rig.runner().run(ada());
        run.add_user_text("Pay rent.");
        let exec = run.exec(ToolCall::text("c", rig.name(), ARGUMENTS));
        if asks {
            runtime().block_on(exec);
            rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
        } else {
            rig.dies(async move { drop(exec.await) });
        }
        rig.later(async { rig.runner().sweep().await.expect("swept") });
        assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""done""#.to_owned())), "{asks}");
        assert_eq!(rig.effects(), [2], "{asks}");
    }
}

/// The clocks of the store and of the process jump by a day, in both directions, while a call is taken over.
#[test]
fn a_clock_that_jumps_changes_no_end() {
    for hours in [-24, 24] {
        every(|rig, dies| {
            let rig = died(rig.tool, dies);
            rig.clock.advance(LEASE);
            let due = rig.clock.now();
            rig.clock.set(due + SignedDuration::from_hours(hours));
            runtime().block_on(async {
                rig.runner().sweep().await.expect("swept");
                assert_eq!(open(&rig).await.len(), usize::from(hours < 0), "no sweep takes it before its lease ends");
            });
            rig.clock.set(due + SignedDuration::from_hours(-hours));
            runtime().block_on(rig.runner().sweep()).expect("swept");
            rig.clock.set(due);
            runtime().block_on(rig.runner().sweep()).expect("swept");
            rig.holds("jumped", dies);
        });
    }
}

/// The process that takes it over is an hour behind the one that began it.
#[test]
fn a_process_whose_clock_is_behind_reconciles_all_the_same() {
    every(|rig, dies| {
        let rig = died(rig.tool, dies);
        rig.clock.advance(LEASE);
        let behind = Arc::new(ManualClock::at(rig.clock.now() - SignedDuration::from_hours(1)));
        runtime().block_on(rig.runner_by(behind).sweep()).expect("swept");
        rig.holds("behind", dies);
    });
}

/// A process that has the tool reconciles or repeats the call.
#[test]
fn an_approved_call_of_no_run_is_reconciled_or_repeated() {
    every(|rig, dies| {
        let rig = deserted(rig.tool, dies);
        rig.later(async {
            rig.runner().sweep().await.expect("swept");
            assert!(open(&rig).await.is_empty());
        });
        rig.holds("swept", dies);
    });
}

/// A service lets ten calls run at once, and dies after the effects of all of them. No process continues the run.
#[test]
fn ten_calls_of_one_process_are_listed_and_closed_by_one_sweep() {
    every(|rig, dies| {
        let rig = Rig { asks: true, ..rig };
        *of(&rig.there.more) = 9;
        let ids: Vec<_> = (0..10).map(|number| format!("c{number}")).collect();
        let run = rig.runner().run(ada());
        runtime().block_on(async {
            for id in &ids {
                let call = ToolCall::text(id.as_str(), rig.name(), format!(r#"{{"what":"{id}"}}"#));
                assert_eq!(run.exec(call).await.outcome(), Outcome::ApprovalRequired);
            }
        });
        let approved = ids.clone();
        rig.dies(async move {
            let mut deciding = tokio::task::JoinSet::new();
            for id in approved {
                let run = run.clone();
                deciding.spawn(async move { drop(run.resume_shown(&id, ApprovalDecision::Approve, &grace()).await) });
            }
            drop(deciding.join_all().await);
        });
        let listed = |is_abandoned: bool| ids.iter().map(|id| (id.clone(), is_abandoned)).collect::<BTreeMap<_, _>>();
        let records = runtime().block_on(async {
            rig.runner().sweep().await.expect("swept");
            assert_eq!(open(&rig).await.into_iter().collect::<BTreeMap<_, _>>(), listed(false), "they may still run");
            rig.clock.advance(LEASE);
            assert_eq!(open(&rig).await.into_iter().collect::<BTreeMap<_, _>>(), listed(true));
            rig.runner().sweep().await.expect("swept");
            assert!(open(&rig).await.is_empty());
            assert_eq!(Chain::verify(&rig.store.records(&RecordFilter::default()).await.expect("records")), Ok(()));
            rig.store.calls(&RecordFilter::default()).await.expect("records")
        });
        let ((outcome, cause, _), times) = rig.expected(dies);
        let ended: BTreeMap<_, _> =
            records.iter().map(|record| (record.tool_call_id.to_string(), (record.outcome, record.cause()))).collect();
        assert_eq!(records.len(), 10, "{}: one record each", rig.tool);
        assert_eq!(ended, ids.iter().map(|id| (id.clone(), (outcome, cause))).collect(), "{} {dies:?}", rig.tool);
        assert_eq!(rig.effects(), times.map_or(Vec::new(), |times| vec![times; 10]), "{} {dies:?}", rig.tool);
    });
}

/// A sweep without tools leaves it to one that has them.
#[test]
fn an_approved_call_is_left_where_its_tool_is_not() {
    let rig = deserted("keyed", Dies::After);
    rig.later(async {
        rig.dyn_store().sweep().await.expect("swept");
        assert_eq!(open(&rig).await, [("c".to_owned(), true)]);
        rig.runner().sweep().await.expect("swept");
    });
    rig.holds("swept by the second", Dies::After);
}

/// A worker's run is the next worker's: no sweep takes the chance to reconcile away.
#[test]
fn a_call_of_a_run_in_the_queue_is_left_to_a_worker() {
    every(|rig, dies| {
        runtime().block_on(async {
            let mut conversation = rig.agent().converse(rig.runner().run(ada()));
            conversation.accept(Input::from("Pay.")).await.expect("a message");
            rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        });
        let worker = rig.worker();
        rig.dies(async move { drop(worker.run(std::future::pending()).await) });
        rig.later(async {
            rig.runner().sweep().await.expect("swept");
            rig.dyn_store().sweep().await.expect("swept");
            assert_eq!(open(&rig).await, [("c".to_owned(), true)]);
            rig.worked().await;
        });
        rig.holds("swept before the worker", dies);
    });
}

/// The run waits in the queue, and a service that let its call run died: the sweep wakes the run, and a worker
/// continues it.
#[test]
fn a_run_that_waits_is_woken_for_its_call() {
    every(|rig, dies| {
        let rig = Rig { asks: true, ..Rig::new(rig.tool, dies) };
        let saved = runtime().block_on(async {
            let mut conversation = rig.agent().converse(rig.runner().run(ada()));
            conversation.accept(Input::from("Pay.")).await.expect("a message");
            rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
            rig.works_until("approval_required").await;
            rig.queue().find("run", Some("acme")).await.expect("it is there").1
        });
        let options = RunOptions::new().principal("ada").tenant("acme");
        let run = runtime().block_on(rig.runner().restore(saved.run().clone(), options)).expect("restored");
        rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
        rig.later(async {
            rig.runner().sweep().await.expect("swept");
            rig.worked().await;
        });
        rig.holds("woken", dies);
    });
}

/// A worker is told to stop while its sweep reconciles a call of another process. The call ends before the worker does.
#[test]
fn a_worker_that_stops_ends_the_call_that_its_sweep_has() {
    let rig = died("keyed", Dies::After);
    *of(&rig.there.looks) = Looks::Slowly;
    rig.clock.advance(LEASE);
    let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    paused.expect("a runtime").block_on(async {
        rig.worker().run(rig.there.died.notified()).await.expect("the store is there");
    });
    rig.holds("stopped while it sweeps", Dies::After);
}

/// A run of another tenant with the same id does not own the call.
#[test]
fn a_run_of_another_tenant_keeps_no_call_open() {
    let rig = died("plain", Dies::After);
    runtime().block_on(async {
        let theirs = RunOptions::new().run_id("run").principal("bob").tenant("other");
        let conversation = rig.agent().converse(rig.runner().run(theirs));
        let kept = rig.queue().begin(&conversation.save().await.expect("saved"), "web").await.expect("it is new");
        kept.release(None).await.expect("it has the run");
    });
    rig.later(async {
        rig.runner().sweep().await.expect("swept");
        assert_eq!(open(&rig).await, []);
        let theirs = rig.queue().find("run", Some("other")).await.expect("it is there").0;
        assert_eq!(theirs.due, None, "it is not woken for a call that is not its own");
    });
}
