//! Several copies of one run that decide on, restore or read its calls at the same time.

use tests::Shown as _;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::StoreError;

use super::*;

fn noop() -> std::task::Context<'static> {
    std::task::Context::from_waker(std::task::Waker::noop())
}

/// The store keeps the waiting call, although the approval cannot be written.
#[tokio::test]
async fn an_approval_that_could_not_be_taken_counts_for_nothing() {
    let rig = Rig::new();
    let policy = format!("{ASKS}\n[budgets.run]\ncalls = 1");
    rig.run(&policy).exec(change_call("c")).await;
    // Each attempt makes sure afterwards that nothing of it is left in the ledger.
    let fails = AtomicU32::new(10);
    let run = rig.hooked(&policy, move |method| match method {
        "update" if fails.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() => {
            HookAction::Fail(StoreError::Unavailable("the disk is gone".into()))
        }
        _ => HookAction::Pass,
    });
    for _ in 0..5 {
        let error =
            run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect_err("the store is down");
        assert_eq!(error.code(), "store_unavailable");
    }
    let result = run.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1), "{}", result.to_model());
}

#[tokio::test]
async fn racing_approvers_of_one_run_let_the_call_run_once() {
    let rig = Rig::new();
    let run = rig.hooked(ASKS, late);
    run.exec(change_call("c")).await;
    let (approve, grace) = (ApprovalDecision::Approve, tests::grace());
    let decide = || run.resume_shown("c", approve.clone(), &grace);
    let (one, two, three, four) = tokio::join!(decide(), decide(), decide(), decide());
    let outcomes: Vec<_> = [one, two, three, four].into_iter().flatten().map(|result| result.outcome()).collect();
    assert_eq!((outcomes.as_slice(), rig.effects()), ([Outcome::Ok].as_slice(), 1));
    rig.check("c", "four approvers").await;
}

/// The approver who loses holds no budget of the run, and gets the same answer as everybody who is late.
#[tokio::test]
async fn a_losing_approver_does_not_meet_the_budget_of_the_run() {
    for budget in ["calls = 1", "bytes = 40000", "calls = 2", ""] {
        let rig = Rig::new();
        let policy = format!("{ASKS}\n[budgets.run]\n{budget}");
        let run = rig.hooked(&policy, late);
        run.exec(change_call("c")).await;
        let (approve, grace) = (ApprovalDecision::Approve, tests::grace());
        let question = tests::Shown::question(&run, "c").await;
        let decide = || run.resume(&question, approve.clone(), &grace);
        let (one, two, three, four) = tokio::join!(decide(), decide(), run.abandon("c"), decide());
        let mut told: Vec<_> = [one, two, three, four]
            .into_iter()
            .map(|decided| decided.map_or_else(|error| error.code(), |result| result.outcome().code()))
            .collect();
        told.sort_unstable();
        assert_eq!(told, ["not_pending", "not_pending", "not_pending", "ok"], "{budget}");
        assert_eq!(rig.effects(), 1, "{budget}");
        let spent = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("JSON");
        assert_eq!(spent["spent"]["calls"], 1, "{budget}: {}", spent["spent"]);
        rig.check("c", budget).await;
    }
}

/// The first one gives up: the next one decides, with the whole budget.
#[tokio::test]
async fn who_waited_for_a_decision_that_was_dropped_decides() {
    let rig = Rig::new();
    let run = rig.hooked(&format!("{ASKS}\n[budgets.run]\ncalls = 1"), late);
    run.exec(change_call("c")).await;
    let grace = tests::grace();
    assert!(!polled(1, run.resume_shown("c", ApprovalDecision::Approve, &grace)).await);
    let result = run.resume_shown("c", ApprovalDecision::Approve, &grace).await.expect("it waits");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1));
}

/// The record of a decision on an expired call states that the decision came too late.
#[tokio::test]
async fn a_decision_that_comes_too_late_is_recorded_as_that() {
    let late = [
        ApprovalDecision::Approve,
        ApprovalDecision::ApproveEdited(r#"{"to":8}"#.to_owned()),
        ApprovalDecision::Respond("3".to_owned()),
        ApprovalDecision::Deny(None),
    ];
    let kinds = async |rig: &Rig| -> Vec<_> {
        let records = rig.store.records(&RecordFilter::default()).await.expect("records");
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        decisions.map(|decision| (decision.decision.code(), decision.decider.is_some())).collect()
    };
    for decision in late {
        let rig = Rig::new();
        rig.run(ASKS).exec(change_call("c")).await;
        rig.clock.advance(Duration::from_hours(24));
        let result = rig.run(ASKS).resume_shown("c", decision.clone(), &tests::grace()).await.expect("it waits");
        assert_eq!((result.outcome(), rig.effects()), (Outcome::ApprovalExpired, 0), "{decision:?}");
        assert_eq!(kinds(&rig).await, [("too_late", true)], "{decision:?}");
    }
    let rig = Rig::new();
    rig.run(OPEN).exec(client_call("c")).await;
    rig.clock.advance(Duration::from_hours(24));
    rig.run(OPEN).client_result("c", "\"done\"").await.expect("it waits");
    assert_eq!(kinds(&rig).await, [("too_late", false)]);
    // Nobody decided at all.
    let rig = Rig::new();
    rig.run(ASKS).exec(change_call("c")).await;
    rig.run(ASKS).expire_shown("c").await.expect("it waits");
    assert_eq!(kinds(&rig).await, [("expired", false)]);
}

/// A call that was finished under the same id, but is another one, does not answer.
#[tokio::test]
async fn the_stored_result_is_that_of_the_same_key() {
    let rig = Rig::new();
    assert_eq!(rig.run(OPEN).exec(change_call("c")).await.to_model(), "7");
    let other = ToolCall::text("c", "cut__other", "{}");
    assert_eq!(rig.run(OPEN).exec(other).await.outcome(), Outcome::Ok);
    let again = rig.run(OPEN).exec(change_call("c")).await;
    assert_eq!((again.to_model().as_str(), rig.effects()), ("7", 2));
}

#[tokio::test]
async fn the_stored_result_outlives_its_record() {
    let rig = Rig::new();
    let store = Arc::new(MemoryStore::with_limits(2, 8));
    let run = || rig.process(Arc::clone(&store) as _, OPEN).run(ada());
    assert_eq!(run().exec(change_call("c")).await.outcome(), Outcome::Ok);
    for id in ["x", "y"] {
        run().exec(ToolCall::text(id, "nobody", "{}")).await;
    }
    let again = run().exec(change_call("c")).await;
    assert_eq!((again.outcome(), again.to_model().as_str(), rig.effects()), (Outcome::Ok, "7", 1));
}

#[tokio::test]
async fn more_calls_than_a_page_are_known() {
    let rig = Rig::new();
    let world = rig.hooked(OPEN, |_| HookAction::Pass);
    for at in 0..300 {
        // Killed: nothing of it is heard again.
        let call = ToolCall::text(format!("c{at}"), "cut__stuck", format!(r#"{{"number":{at}}}"#));
        let mut call = Box::pin(world.exec(call));
        let _ = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
        std::mem::forget(call);
    }
    let known = rig.run(OPEN).recorded(&CallId::new("c299")).await.expect("a store");
    assert_eq!(known.map(|result| result.outcome()), Some(Outcome::OutcomeUnknown));
}

/// The call ends between two reads of the store.
#[tokio::test]
async fn a_call_that_ends_while_it_is_looked_up_is_found() {
    let rig = Rig::new();
    let mut call = Box::pin(rig.run(OPEN).exec(change_call("c")));
    let _ = poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await;
    let call = Mutex::new(Some(call));
    let run = rig.hooked(OPEN, move |method| match call.lock().unwrap().take_if(|_| method == "list") {
        Some(call) => HookAction::After(Box::pin(async move { drop(call.await) })),
        None => HookAction::Pass,
    });
    let known = run.recorded(&CallId::new("c")).await.expect("a store").expect("it ended");
    assert_eq!(known.outcome(), Outcome::Ok);
}

/// A restore that looks at the store while somebody decides does not bring the call back.
#[tokio::test]
async fn a_call_that_is_decided_while_it_is_restored_does_not_wait_again() {
    for method in ["records", "read", "list"] {
        let rig = Rig::new();
        let run = rig.run(ASKS);
        run.exec(change_call("c")).await;
        let saved = run.snapshot().await.expect("a snapshot");
        let edited = ApprovalDecision::ApproveEdited(r#"{"to":8}"#.to_owned());
        let decide = async move { drop(run.resume_shown("c", edited, &tests::grace()).await.expect("it waits")) };
        let decide = Mutex::new(Some(decide));
        let hook = move |called| match decide.lock().unwrap().take_if(|_| called == method) {
            Some(decide) => HookAction::After(Box::pin(decide)),
            None => HookAction::Pass,
        };
        let store = Arc::new(HookedStore::new(Arc::clone(&rig.store) as _, hook));
        rig.process(store, ASKS).restore(saved.clone(), ada()).await.expect("a run");
        let before = rig.effects();
        assert!(!rig.waits("c").await || before == 0, "{method}: it was decided, and waits again");
        rig.check("c", method).await;
    }
}

/// Another principal's call with the same ids does not prevent a restore, and is not mistaken for the restored call.
#[tokio::test]
async fn other_people_do_not_keep_a_call_from_being_restored() {
    let rig = Rig::new();
    let run = rig.run(ASKS);
    run.exec(change_call("c")).await;
    let saved = run.snapshot().await.expect("a snapshot");
    let store = Arc::new(MemoryStore::new());
    let process = || rig.process(Arc::clone(&store) as _, ASKS);
    let eve = process().run(RunOptions::new().run_id("run-1").principal("eve"));
    eve.exec(ToolCall::text("c", "nobody", "{}")).await;
    process().restore(saved, ada()).await.expect("a run");
    assert!(
        store.pending(&Key::waiting("run-1", None, Some("ada"), &CallId::new("c"))).await.expect("a store").is_some()
    );
}

/// A process makes the same call without knowledge of the other's suspension.
#[tokio::test]
async fn a_call_that_waits_already_waits_for_both() {
    let rig = Rig::new();
    let (one, two) = (rig.run(ASKS), rig.run(ASKS));
    assert_eq!(one.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired);
    assert_eq!(two.exec(change_call("c")).await.outcome(), Outcome::ApprovalRequired, "it waits");
    rig.check("c", "twice").await;
    let result = two.resume_shown("c", ApprovalDecision::Approve, &tests::grace()).await.expect("it waits");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 1));
    rig.check("c", "decided").await;
}

/// The model does not read a client's second answer, so no id in it counts as seen.
#[tokio::test]
async fn an_answer_that_nobody_took_is_not_read() {
    let rig = Rig::new();
    let policy =
        format!("{OPEN}\n[labels.read]\nfrom_tools = ['cut__client']\ndeny_effects = ['external_side_effect']");
    rig.run(&policy).exec(client_call("c")).await;
    let other = Mutex::new(Some(rig.run(&policy)));
    let run = rig.hooked(&policy, move |method| {
        match other.lock().unwrap().take_if(|_| method == "update") {
            // Somebody answers between the look and the write.
            Some(other) => {
                let answered = std::pin::pin!(other.client_result("c", "\"one\"")).poll(&mut noop());
                assert!(answered.is_ready());
                HookAction::Pass
            }
            None => HookAction::Pass,
        }
    });
    let error = run.client_result("c", "\"two\"").await.expect_err("it was answered");
    assert_eq!(error.code(), "not_pending");
    let saved = serde_json::to_value(run.snapshot().await.expect("a snapshot")).expect("JSON");
    assert_eq!(saved["state"]["labels"], serde_json::json!([]));
    assert_eq!(rig.closed("c").await.len(), 1);
}

/// A client was asked to do something, and may have done it.
#[tokio::test]
async fn a_client_that_answers_too_late_may_have_acted() {
    let rig = Rig::new();
    rig.run(OPEN).exec(client_call("c")).await;
    rig.clock.advance(Duration::from_hours(2 * 24));
    let result = rig.run(OPEN).client_result("c", "\"done\"").await.expect("it waits");
    assert_eq!((result.outcome(), result.executed()), (Outcome::OutcomeUnknown, true));
    assert!(result.to_model().contains("too late"), "{}", result.to_model());
}

/// Two processes hand out one call of a client.
#[tokio::test]
async fn a_call_is_handed_out_once() {
    let rig = Rig::new();
    assert_eq!(rig.run(OPEN).exec(client_call("c")).await.outcome(), Outcome::ClientRequired);
    let second = rig.run(OPEN).exec(client_call("c")).await;
    assert_eq!((second.outcome(), second.executed()), (Outcome::OutcomeUnknown, true), "the client may have acted");
    rig.check("c", "handed out twice").await;
    let result = rig.run(OPEN).client_result("c", "\"done\"").await.expect("it waits");
    assert_eq!(result.outcome(), Outcome::Ok);
    assert_eq!(rig.closed("c").await.len(), 1);
}

/// The store's answer to the intent takes longer than the lease: another process may have recorded the outcome as
/// unknown already.
#[tokio::test(start_paused = true)]
async fn a_call_whose_lease_ended_before_it_began_does_not_begin() {
    let rig = Rig::new();
    let (clock, store) = (Arc::clone(&rig.clock), Arc::clone(&rig.store));
    let slow = |method| if method == "update" { HookAction::Slow(Duration::from_secs(40)) } else { HookAction::Pass };
    let slow = rig.hooked(OPEN, slow);
    let call = tokio::spawn(async move { slow.exec(change_call("c")).await });
    tokio::time::sleep(Duration::from_secs(35)).await;
    clock.advance(Duration::from_secs(35));
    let looked = rig.run(OPEN).recorded(&CallId::new("c")).await.expect("a store").expect("it began");
    assert_eq!(looked.outcome(), Outcome::OutcomeUnknown);
    let result = call.await.expect("it ends");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 0), "its record was closed before");
    assert_eq!(store.calls(&RecordFilter::default()).await.expect("records").len(), 1);
}

/// The arguments of a model cannot make the records of a store unreadable.
#[tokio::test]
async fn numbers_that_no_double_holds_are_recorded() {
    let rig = Rig::new();
    let run = rig.run(OPEN);
    for (id, number) in [
        ("a", "1e999"),
        ("b", "-1e400"),
        ("c", "0.1000000000000000055511151231257827"),
        ("d", "123456789012345678901234567890"),
    ] {
        run.exec(ToolCall::text(id, "cut__change", format!(r#"{{"to":{number}}}"#))).await;
        run.exec(ToolCall::text(format!("{id}2"), "cut__other", format!(r#"{{"to":{number}}}"#))).await;
        assert_eq!(rig.closed(id).await.len(), 1, "{number}");
    }
}
