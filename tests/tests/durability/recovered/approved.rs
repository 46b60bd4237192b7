//! Calls that waited for a person and were approved, before their process died.

use tests::Shown as _;
use tests::world::{HookAction, HookedStore};
use tool_runtime::ToolCall;
use tool_runtime::agent::SavedConversation;
use tool_runtime::call::Question;
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::RecordFilter;

use super::*;

fn waiting(tool: &'static str, dies: Dies) -> Rig {
    Rig { asks: true, ..Rig::new(tool, dies) }
}

fn every_approved(check: impl Fn(Rig, Dies)) {
    every(|rig, dies| check(waiting(rig.tool, dies), dies));
}

/// A service that let a call run and died continues it when it is back.
#[test]
fn a_run_that_is_asked_what_became_of_it() {
    every_approved(|rig, dies| {
        let runner = rig.runner();
        let run = runner.run(ada());
        let call = ToolCall::text("c", rig.name(), ARGUMENTS);
        let asked = runtime().block_on(run.exec(call));
        assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
        rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
        let still = runtime().block_on(async { rig.runner().run(ada()).recover(&"c".into()).await.expect("a store") });
        assert!(still.is_none(), "its process has until the end of its lease");
        rig.later(async {
            let run = rig.runner().run(ada());
            let error = run.resume_shown("c", ApprovalDecision::Approve, &grace()).await.expect_err("it does not wait");
            assert_eq!(error.code(), "not_pending");
            let first = run.recover(&"c".into()).await.expect("a store").expect("it ended");
            let second = run.recover(&"c".into()).await.expect("a store").expect("it ended");
            assert_eq!(first.outcome(), second.outcome());
        });
        rig.holds("recover", dies);
    });
}

/// The gate continues it, too, if it gets the same call once more.
#[test]
fn a_run_that_is_given_the_call_again() {
    every_approved(|rig, dies| {
        let runner = rig.runner();
        let run = runner.run(ada());
        let call = ToolCall::text("c", rig.name(), ARGUMENTS);
        runtime().block_on(run.exec(call.clone()));
        rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
        rig.later(async { drop(rig.runner().run(ada()).exec(call).await) });
        rig.holds("exec after an approval", dies);
    });
}

/// The arguments of the second attempt are the ones that the person wrote.
#[test]
fn what_was_edited_stays_edited() {
    let rig = waiting("keyed", Dies::After);
    let run = rig.runner().run(ada());
    runtime().block_on(run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)));
    let edited = ApprovalDecision::ApproveEdited(r#"{"what":"food"}"#.to_owned());
    rig.dies(async move { drop(run.resume_shown("c", edited, &grace()).await) });
    rig.later(async { drop(rig.runner().run(ada()).recover(&"c".into()).await) });
    assert_eq!(rig.ended(), (Outcome::Ok, None, Some(r#""found food""#.to_owned())));
    let keys: Vec<_> = of(&rig.there.effects).keys().cloned().collect();
    assert_eq!(*of(&rig.there.looked), keys, "it looks for the key that took effect");
}

/// Whatever the process that took over found out, the model and the auditor learn that a person changed the call.
#[test]
fn the_model_reads_that_a_person_changed_the_call() {
    every_approved(|rig, dies| {
        let run = rig.runner().run(ada());
        runtime().block_on(run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)));
        let edited = ApprovalDecision::ApproveEdited(r#"{"what":"food"}"#.to_owned());
        rig.dies(async move { drop(run.resume_shown("c", edited, &grace()).await) });
        let [first, second] = rig.later(async {
            let run = rig.runner().run(ada());
            [run.recover(&"c".into()).await, run.recover(&"c".into()).await].map(|read| read.expect("a store"))
        });
        for result in [first, second] {
            let result = result.expect("it ended");
            let (read, what) = (result.to_model(), format!("{} {dies:?}", rig.tool));
            // A prevented call did not run.
            let ran = (rig.tool, dies) != ("keyed", Dies::Before);
            assert_eq!(read.contains("A person changed `what` before it ran: `what` is "), ran, "{what}: {read}");
            assert!(result.is_answered() || !result.edits().is_empty(), "{what}");
        }
        let records = runtime().block_on(rig.store.calls(&RecordFilter::default())).expect("records");
        assert!(records[0].is_answered() || !records[0].edits().is_empty());
    });
}

/// One id stands for two calls of a run that two processes had. The record of one is not the end of the other.
#[test]
fn two_calls_of_one_id_have_two_ends() {
    for tool in TOOLS {
        let rig = Rig::new(tool, Dies::After);
        *of(&rig.there.fate) = None;
        let rent = ToolCall::text("c", rig.name(), ARGUMENTS);
        assert!(runtime().block_on(rig.runner().run(ada()).exec(rent)).is_ok());
        let rig = Rig { asks: true, ..rig };
        let food = || ToolCall::text("c", rig.name(), r#"{"what":"food"}"#);
        let saved = runtime().block_on(async {
            let run = rig.runner().run(ada());
            let asked = run.exec(food()).await;
            assert_eq!(asked.outcome(), Outcome::ApprovalRequired);
            run.snapshot().await.expect("taken")
        });
        *of(&rig.there.fate) = Some(Dies::After);
        let run = rig.runner().run(ada());
        rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
        let recovered = rig.later(async {
            let options = RunOptions::new().principal("ada").tenant("acme");
            let run = rig.runner().restore(saved, options).await.expect("restored");
            run.recover(&"c".into()).await.expect("a store").expect("it ended")
        });
        let expected = if tool == "plain" { Outcome::OutcomeUnknown } else { Outcome::Ok };
        assert_eq!(recovered.outcome(), expected, "{tool}: {}", recovered.to_model());
        assert_eq!(rig.effects().len(), 2, "{tool}: two keys");
        let records = runtime().block_on(rig.store.calls(&RecordFilter::default())).expect("records");
        assert_eq!(records.len(), 2, "{tool}: each has its record");
        let again = runtime().block_on(rig.runner().run(ada()).exec(food()));
        assert_eq!((again.outcome(), rig.effects().len()), (expected, 2), "{tool}: the gate knows which it is");
    }
}

/// Another principal learns nothing, and starts nothing.
#[test]
fn strangers_do_not_go_on_with_it() {
    let rig = waiting("again", Dies::After);
    let run = rig.runner().run(ada());
    runtime().block_on(run.exec(ToolCall::text("c", rig.name(), ARGUMENTS)));
    rig.dies(async move { drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await) });
    rig.later(async {
        for stranger in [ada().principal("eve"), ada().tenant("other")] {
            assert!(rig.runner().run(stranger).recover(&"c".into()).await.expect("a store").is_none());
        }
    });
    assert_eq!(rig.effects(), [1]);
}

/// The conversation waited when it was saved; another process carried the decision out, and died.
#[test]
fn a_restored_conversation() {
    every_approved(|rig, dies| {
        let (saved, question) = decided_elsewhere(&rig);
        rig.later(async {
            let mut conversation = restored(&rig, &saved).await;
            // The person, who got no answer, decides once more.
            let approve = Input::new().decide(&question, ApprovalDecision::Approve, &grace());
            conversation.accept(approve).await.expect("it is taken as it was decided");
            let step = conversation.step().await;
            assert!(!matches!(step, Step::Waits(_)), "{step:?}");
        });
        rig.holds("decided and restored", dies);
    });
}

/// A service that restores the conversation and has no decision for it finds out that another process decided.
#[test]
fn a_restored_conversation_without_a_decision() {
    every_approved(|rig, dies| {
        let (saved, _) = decided_elsewhere(&rig);
        rig.later(async {
            let mut conversation = restored(&rig, &saved).await;
            let ended = conversation.receive(Input::new()).await;
            assert!(conversation.waiting().next().is_none(), "{ended:?}");
        });
        rig.holds("restored without a decision", dies);
    });
}

/// A worker takes the decision from the post, and dies; the next one continues.
#[test]
fn a_worker_that_takes_over() {
    every_approved(|rig, dies| {
        runtime().block_on(async {
            let mut conversation = rig.agent().converse(rig.runner().run(ada()));
            conversation.accept(Input::from("Pay.")).await.expect("a message");
            rig.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
            rig.works_until("approval_required").await;
            let calls = tests::pending_calls(&*rig.store, &RecordFilter::default()).await;
            let approve = Input::new().decide(&calls[0].question(), ApprovalDecision::Approve, &grace());
            rig.queue().post("run", Some("acme"), &approve).await.expect("posted");
        });
        let worker = rig.worker();
        rig.dies(async move { drop(worker.run(std::future::pending()).await) });
        rig.later(rig.worked());
        rig.holds("worker after a post", dies);
    });
}

/// A conversation that was saved while its call waited, and the question of the call. Another process let the call run,
/// and died.
fn decided_elsewhere(rig: &Rig) -> (SavedConversation, Question) {
    let saved = runtime().block_on(async {
        let mut conversation = rig.asked().await;
        while let Step::Asked | Step::Ran = conversation.step().await {}
        conversation.save().await.expect("saved")
    });
    let mut deciding = runtime().block_on(restored(rig, &saved));
    let question = tests::question(&deciding, "c");
    let approve = Input::new().decide(&question, ApprovalDecision::Approve, &grace());
    rig.dies(async move { drop(deciding.accept(approve).await) });
    (saved, question)
}

async fn restored(rig: &Rig, saved: &SavedConversation) -> Conversation {
    let options = RunOptions::new().principal("ada").tenant("acme");
    rig.agent().restore(&rig.runner(), options, saved).await.expect("restored")
}

/// A call begins to wait, and is approved, while another process closes its turn. Whichever of the reads it falls
/// between, the model does not read that it did not run.
#[test]
fn a_call_that_is_approved_between_two_reads_is_not_reported_as_not_run() {
    for read in 0..12 {
        let rig = waiting("plain", Dies::After);
        *of(&rig.there.fate) = None;
        runtime().block_on(async {
            let saved = rig.asked().await.save().await.expect("saved");
            let reads = Arc::new(Mutex::new(None::<u32>));
            let (counted, runner) = (Arc::clone(&reads), rig.runner());
            let store = HookedStore::new(Arc::clone(&rig.store) as Arc<dyn Store>, move |_| {
                let Some(count) = &mut *of(&counted) else { return HookAction::Pass };
                *count += 1;
                if *count != read + 1 {
                    return HookAction::Pass;
                }
                let run = runner.run(ada());
                HookAction::After(Box::pin(async move {
                    drop(run.resume_shown("c", ApprovalDecision::Approve, &grace()).await);
                }))
            });
            let mut conversation =
                rig.agent().restore(&rig.runner_over(Arc::new(store)), ada(), &saved).await.expect("restored");
            // The process that has the run lets the call wait, and is killed before it saves.
            let mut first = rig.agent().restore(&rig.runner(), ada(), saved).await.expect("restored");
            while !matches!(first.step().await, Step::Waits(_)) {}
            *of(&reads) = Some(0);
            conversation.accept(Input::from("Never mind.")).await.expect("a message");
            *of(&reads) = None;
            let ran = !rig.effects().is_empty();
            let shown = serde_json::to_string(&conversation.save().await.expect("saved")).expect("JSON");
            assert!(!ran || !shown.contains("cancelled"), "read {read}: {shown}");
        });
    }
}
