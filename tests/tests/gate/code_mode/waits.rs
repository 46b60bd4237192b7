//! Calls of scripts that have effects: the script waits with its call, and runs again from its beginning after the
//! decision.

use std::sync::Arc;
use tests::Shown as _;

use tests::world::Processes;
use tool_runtime::agent::CodeMode;
use tool_runtime::call::{Decider, DecisionError, Question, Suspension};
use tool_runtime::runner::{ApprovalDecision, Grant, RunSnapshot};
use tool_runtime::store::{GrantScope, RecordFilter};
use tool_runtime::testing::ManualClock;
use tool_runtime::{
    Capabilities, Outcome, Run, ToolCall, ToolCatalog, ToolError, ToolExecResult, ToolPolicy, ToolRunner, tool,
};

use crate::code_mode::{POLICY, Rig, World, call, code, options};

pub(crate) const SCRIPT: &str = "let all = notes__list(); let done = [];
for note in all { try { done.push(notes__delete(#{ number: note })); } catch (e) { done.push(e.errorCode); } }
#{ done: done, again: notes__list() }";

pub(crate) fn with_effects() -> CodeMode {
    code().tools(["notes__list", "notes__delete"]).effects()
}

pub(crate) async fn decide(run: &Run, decision: ApprovalDecision) -> ToolExecResult {
    run.resume_shown("c1", decision, &Decider::new("grace").tenant("acme")).await.expect("it waits")
}

fn done(result: &ToolExecResult) -> String {
    crate::code_mode::read(&result.to_model())["value"]["done"].to_string()
}

/// The policy asks for no approval; the script waits all the same, and cannot catch that.
#[tokio::test]
async fn each_effect_waits_for_a_person() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    let result = run.exec(call(SCRIPT)).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::ApprovalRequired, 0));
    let pending = tests::pending_calls(&*rig.store, &RecordFilter::default()).await;
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

/// Each effect asks its own question, so a decision that is sent twice lets one run.
#[tokio::test]
async fn a_decision_that_is_sent_twice_lets_one_effect_happen() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    let grace = Decider::new("grace").tenant("acme");
    let approve = async |question: &Question| run.resume(question, ApprovalDecision::Approve, &grace).await;
    let seven = run.exec(call(SCRIPT)).await.question().expect("it waits").clone();
    let eight = approve(&seven).await.expect("it waits").question().expect("the next effect waits").clone();
    assert_ne!(seven, eight);
    for _ in 0..2 {
        let again = approve(&seven).await.expect("the script waits");
        assert_eq!((again.outcome(), rig.effects()), (Outcome::ApprovalMismatch, 1));
    }
    assert_eq!((done(&approve(&eight).await.expect("it waits")).as_str(), rig.effects()), ("[7,8]", 2));
    assert_eq!(approve(&eight).await.expect_err("it has ended").code(), "not_pending");
    assert_eq!(rig.effects(), 2);
}

/// A decision on the model's own call does not apply to a script's calls, because a script may loop.
#[tokio::test]
async fn a_grant_lets_no_call_of_a_script_run() {
    let rig = Rig::new();
    let runner = rig.runner("require_approval_for_tools = [\"notes__delete\"]", with_effects());
    let run = runner.run(options());
    let direct = |id: &str| ToolCall::text(id, "notes__delete", r#"{"number":7}"#);
    assert_eq!(run.exec(direct("d1")).await.outcome(), Outcome::ApprovalRequired);
    let grace = Decider::new("grace").tenant("acme");
    run.remember_shown("d1", Grant::allow(GrantScope::Principal).any_arguments(), &grace).await.expect("a grant");
    assert_eq!((run.exec(direct("d2")).await.outcome(), rig.effects()), (Outcome::Ok, 1));
    let result = run.exec(call("for i in 0..5 { notes__delete(#{ number: 7 }); }")).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::ApprovalRequired, 1));
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!(
        (result.outcome(), rig.effects()),
        (Outcome::ApprovalRequired, 2),
        "each waits, also when it is run again"
    );
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

/// A script that is abandoned leaves no waiting call. It may have had effects, so its outcome is unknown.
#[tokio::test]
async fn a_script_that_is_abandoned_leaves_nothing() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    run.exec(call(SCRIPT)).await;
    decide(&run, ApprovalDecision::Approve).await;
    let result = run.abandon("c1").await.expect("it waits");
    assert_eq!((result.outcome(), rig.effects()), (Outcome::OutcomeUnknown, 1));
    assert!(tests::pending_calls(&*rig.store, &RecordFilter::default()).await.is_empty());
}

/// Sends a note, once the door is open.
#[tool(name = "notes__send", effect = state_change, redact = ["$"])]
async fn send(
    world: &dyn World,
    /// The note.
    number: u32,
) -> Result<u32, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(number)
}

/// The outcome of a twin in another run becomes unknown while the script waits. The person was not shown that, so the
/// script waits with another question.
#[tokio::test]
async fn a_script_asks_again_about_an_effect_that_may_have_happened() {
    let rig = Rig::new();
    let shared = Processes {
        clock: Arc::new(ManualClock::at(jiff::Timestamp::now())),
        store: Arc::clone(&rig.store),
        world: Arc::clone(&rig.world),
    };
    let runner = rig.runner("", code().tools(["notes__send"]).effects());
    let run = runner.run(options());
    let before = run.exec(call("notes__send(#{ number: 7 })")).await.question().expect("it waits").clone();
    let twin = runner.run(options().run_id("twin"));
    let sends = async move { twin.exec(ToolCall::text("t1", "notes__send", r#"{"number":7}"#)).await };
    shared.stuck(sends).await.abort();
    while rig.records().await.iter().all(|record| record.outcome != Outcome::OutcomeUnknown) {
        tokio::task::yield_now().await;
    }
    let again = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((again.outcome(), rig.effects()), (Outcome::ApprovalRequired, 1), "{}", again.to_model());
    assert_ne!(again.question().expect("it waits"), &before);
    let snapshot = run.snapshot().await.expect("a snapshot");
    let graph = snapshot.waiting().next().and_then(|call| call.graph.clone()).expect("the script waits");
    assert_eq!(graph.refused.and_then(|refused| refused.mismatch), Some(DecisionError::Question));
    shared.open(1);
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((result.outcome(), rig.effects()), (Outcome::Ok, 2), "{}", result.to_model());
}

/// Where nobody can approve, there is no tool with effects.
#[tokio::test]
async fn without_approvals_there_is_no_effect() {
    let rig = Rig::new();
    let catalog = ToolCatalog::builder().collect().dynamic(with_effects()).build().expect("a catalog");
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY).expect("a policy"))
        .capabilities(Capabilities::new().with(Arc::clone(&rig.world) as Arc<dyn World>))
        .store(Arc::clone(&rig.store))
        .build()
        .expect("a runner");
    for delete in ["notes__delete(#{ number: 7 })", "call_tool(\"notes__delete\", #{ number: 7 })"] {
        let script = format!("let e = (); try {{ {delete}; }} catch (thrown) {{ e = thrown.errorCode; }} e");
        let result = runner.run(options()).exec(call(&script)).await;
        let expected = if delete.starts_with("call") { "unavailable" } else { "null" };
        assert!(rig.effects() == 0 && result.to_model().contains(expected), "{}", result.to_model());
    }
}

/// A decision that does not fit is refused with the reason, and the call still waits.
#[tokio::test]
async fn a_decision_that_does_not_fit_can_be_corrected() {
    let rig = Rig::new();
    let run = rig.run("", code().tools(["notes__list", "notes__erase"]).effects());
    let script = "notes__list(); notes__erase(#{ number: 7 })";
    assert_eq!(run.exec(call(script)).await.outcome(), Outcome::ApprovalRequired);
    let edited = |number: u32| ApprovalDecision::ApproveEdited(format!("{{\"number\":{number}}}"));
    // Note 9 was not seen.
    assert_eq!(decide(&run, edited(9)).await.outcome(), Outcome::ApprovalRequired);
    let snapshot = run.snapshot().await.expect("a snapshot");
    let graph = snapshot.waiting().next().and_then(|call| call.graph.clone()).expect("a script");
    assert!(graph.refused.is_some() && rig.effects() == 0);
    let result = decide(&run, edited(8)).await;
    let printed = r"call_2: A person changed `number` before it ran: `number` is 8.\n";
    let expected = format!("{{\"value\":\"8\",\"printed\":\"{printed}\",\"calls\":2}}");
    assert_eq!((result.to_model(), rig.effects()), (expected, 1));
}

/// The script reads the answer that an approver gives in place of a tool.
#[tokio::test]
async fn an_answer_is_what_the_call_returns() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    assert_eq!(run.exec(call("notes__delete(#{ number: 7 })")).await.outcome(), Outcome::ApprovalRequired);
    // The answer has to fit the tool's output.
    let answer = |text: &str| ApprovalDecision::Respond(text.to_owned());
    assert_eq!(decide(&run, answer("\"none\"")).await.outcome(), Outcome::ApprovalRequired);
    let result = decide(&run, answer("9")).await;
    let read = crate::code_mode::read(&result.to_model());
    assert_eq!((read["value"].to_string().as_str(), rig.effects()), ("9", 0));
    let printed = "call_1: The tool did not run: a person provided this result instead.\n";
    assert!(result.to_model().contains(&serde_json::to_string(printed).expect("JSON")), "{}", result.to_model());
}

/// A script that makes other calls when it is run again ends, because the earlier results fit none of them.
#[tokio::test]
async fn a_script_that_diverges_is_stopped() {
    let rig = Rig::new();
    let run = rig.run("", with_effects());
    run.exec(call(SCRIPT)).await;
    let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
    let changed = snapshot.replace(r#"\"Returned\":\"[7,8]\""#, r#"\"Returned\":\"[8,7]\""#);
    assert_ne!(changed, snapshot);
    let snapshot: RunSnapshot = serde_json::from_str(&changed).expect("a snapshot");
    // Another process, with a separate store: only the document goes there.
    let other = Rig::new();
    let run = other.runner("", with_effects()).restore(snapshot, options()).await.expect("a run");
    let result = decide(&run, ApprovalDecision::Approve).await;
    assert!(result.to_model().contains("a different call than before"), "{}", result.to_model());
    assert_eq!(other.effects(), 1, "the one that was approved");
    assert!(tests::pending_calls(&*other.store, &RecordFilter::default()).await.is_empty());
}

/// A call of a script that needs two people waits for both, in any process.
#[tokio::test]
async fn a_call_of_a_script_needs_as_many_people_as_any_other() {
    let rules = "[approvals]\nrequired = 2";
    let rig = Rig::new();
    let run = rig.run(rules, with_effects());
    let mut asked = run.exec(call(SCRIPT)).await.question().expect("it waits").clone();
    for effects in 0..2 {
        let snapshot = serde_json::to_string(&run.snapshot().await.expect("a snapshot")).expect("JSON");
        let snapshot: RunSnapshot = serde_json::from_str(&snapshot).expect("a snapshot");
        let run = rig.runner(rules, with_effects()).restore(snapshot, options()).await.expect("a run");
        let approve =
            async |who: &str| run.resume(&asked, ApprovalDecision::Approve, &Decider::new(who).tenant("acme")).await;
        let first = approve("grace").await.expect("it counts");
        assert_eq!((first.approvals(), first.question()), (Some((1, 2)), Some(&asked)));
        assert_eq!(approve("grace").await.expect_err("the same person").code(), "not_allowed");
        assert_eq!(rig.effects(), effects);
        let last = approve("heidi").await.expect("it counts");
        assert_eq!(rig.effects(), effects + 1);
        match last.question() {
            Some(next) => asked = next.clone(),
            None => assert_eq!(done(&last), "[7,8]"),
        }
    }
    assert_eq!(rig.effects(), 2);
}

/// One person edits the arguments of a script's call, so that it needs two. The script waits for the other one.
#[tokio::test]
async fn an_edit_of_a_scripts_call_that_raises_the_number_waits() {
    let rules = "[[tools.notes__delete.arguments]]\npointer = '/number'\nat_most = 9\notherwise = 'require_approval'\n\
                 [approvals.rules.'tools.notes__delete.arguments[0]']\nrequired = 2";
    let rig = Rig::new();
    let run = rig.run(rules, with_effects());
    assert_eq!(run.exec(call(SCRIPT)).await.outcome(), Outcome::ApprovalRequired);
    let edited = decide(&run, ApprovalDecision::ApproveEdited(r#"{"number":20}"#.to_owned())).await;
    assert_eq!((edited.outcome(), rig.effects()), (Outcome::ApprovalRequired, 0), "{}", edited.to_model());
    let heidi = Decider::new("heidi").tenant("acme");
    assert!(run.resume_shown("c1", ApprovalDecision::Approve, &tests::grace().tenant("acme")).await.is_err());
    let next = run.resume_shown("c1", ApprovalDecision::Approve, &heidi).await.expect("it waits");
    assert_eq!((next.outcome(), rig.effects()), (Outcome::ApprovalRequired, 1), "the next effect waits");
    let last = decide(&run, ApprovalDecision::Approve).await;
    assert_eq!((done(&last).as_str(), rig.effects()), ("[20,8]", 2));
}
