//! Preconditions of calls that need several approvals.

use tool_runtime::agent::{Agent, Input, RunQueue, TurnOutcome, Worker};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};

use super::*;

fn two() -> String {
    format!("{ASKS}\n[approvals]\nrequired = 2\n")
}

fn heidi() -> Decider {
    Decider::new("heidi").tenant("acme")
}

/// The approvals so far, from the store.
async fn approved_by(rig: &Rig) -> Vec<String> {
    rig.waiting().await.approvals().0.iter().map(|decider| decider.principal().to_owned()).collect()
}

async fn decide(rig: &Rig, question: &Question, decision: ApprovalDecision, decider: &Decider) -> ToolExecResult {
    // Another process each time.
    rig.process(&two()).run(of("run-1")).resume(question, decision, decider).await.expect("it waits")
}

/// The last approval compares the world. If it changed, all deciders are asked again.
#[tokio::test]
async fn a_changed_world_drops_every_approval() {
    let rig = Rig::new();
    let first = asked(&rig.process(&two()).run(of("run-1")).exec(call("world__pay")).await);
    rig.accounts.set(90);
    let noted = decide(&rig, &first, ApprovalDecision::Approve, &grace()).await;
    assert_eq!((noted.approvals(), noted.question()), (Some((1, 2)), Some(&first)));
    of_another_world(&decide(&rig, &first, ApprovalDecision::Approve, &heidi()).await);
    assert_eq!(approved_by(&rig).await, Vec::<String>::new());
    let second = rig.waiting().await.question();
    assert_ne!(first, second);
    for (decider, expected) in [(heidi(), Outcome::ApprovalRequired), (grace(), Outcome::Ok)] {
        assert_eq!(rig.shared.effects(), 0);
        assert_eq!(decide(&rig, &second, ApprovalDecision::Approve, &decider).await.outcome(), expected);
    }
    assert_eq!(rig.shared.effects(), 1);
    assert_eq!(rig.refused().await, [DecisionError::World]);
    // The refused decision is no approval.
    let approvals: Vec<_> = rig.decisions().await.iter().map(|decision| decision.approvals).collect();
    assert_eq!(approvals, [Some((1, 2)), None, Some((1, 2)), Some((2, 2))]);
}

/// The next person sees the world of the arguments that an editor gave, and approves that.
#[tokio::test]
async fn edited_arguments_have_a_world_of_their_own() {
    let rig = Rig::new();
    let first = asked(&rig.process(&two()).run(of("run-1")).exec(call("world__pay")).await);
    let edited = ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":50}"#.into());
    let second = asked(&decide(&rig, &first, edited, &grace()).await);
    let summary = rig.waiting().await.summary.expect("a sentence");
    assert_eq!(summary, "Pays 50 to “other”. This call depends on: “balance” is “1120”.");
    rig.accounts.set(90);
    of_another_world(&decide(&rig, &second, ApprovalDecision::Approve, &heidi()).await);
    let third = rig.waiting().await.question();
    let summary = rig.waiting().await.summary.expect("a sentence");
    assert!(summary.contains("“balance” was “1120” and is “1090”. Pays 50 to “other”."), "{summary}");
    // The approval of the editor belongs to the question before, too.
    assert_eq!(decide(&rig, &third, ApprovalDecision::Approve, &heidi()).await.approvals(), Some((1, 2)));
    assert_eq!(decide(&rig, &third, ApprovalDecision::Approve, &grace()).await.outcome(), Outcome::Ok);
    assert_eq!(rig.shared.effects(), 1);
}

/// A posted edit that does not count is dropped, and the worker takes the posts after it.
#[tokio::test]
async fn a_posted_edit_does_not_block_the_posts_after_it() {
    let rig = Rig::new();
    let runner = rig.process(&two());
    let turns =
        [ScriptedTurn::call("c1", "world__pay", r#"{"account":"a-1","cents":50}"#), ScriptedTurn::text("Done.")];
    let agent = Agent::new(Arc::new(ScriptedModel::new(turns)));
    let mut conversation = agent.converse(runner.run(of("run-1")));
    let TurnOutcome::Waiting { calls } = conversation.send("Pay.").await else { panic!("it waits") };
    let (queue, question) = (RunQueue::new(&runner), calls[0].question.clone());
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    rig.accounts.answer(Answer::Panic);
    let edited = ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":50}"#.into());
    let post = async |input: Input| queue.post("run-1", Some("acme"), &input).await.expect("posted");
    post(Input::new().decide(&question, edited, &grace())).await;
    let worker = Worker::new(agent.clone(), runner.clone());
    let is_in = async |state: &str| {
        while &*queue.find("run-1", Some("acme")).await.expect("it is there").0.state != state {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let refused = async {
        while rig.refused().await.is_empty() || queue.find("run-1", Some("acme")).await.expect("there").0.posts() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        post(Input::new().decide(&question, ApprovalDecision::Deny(None), &heidi())).await;
        is_in("answered").await;
    };
    worker.run(refused).await.expect("a store");
    assert_eq!((rig.refused().await, rig.shared.effects()), (vec![DecisionError::World], 0));
}

/// An edit does not count while the world of its arguments cannot be read, and the call waits as before.
#[tokio::test]
async fn an_edit_needs_a_world_that_can_be_read() {
    let rig = Rig::new();
    let first = asked(&rig.process(&two()).run(of("run-1")).exec(call("world__pay")).await);
    decide(&rig, &first, ApprovalDecision::Approve, &heidi()).await;
    rig.accounts.answer(Answer::Panic);
    let edited = ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":50}"#.into());
    of_another_world(&decide(&rig, &first, edited, &grace()).await);
    assert_eq!((rig.waiting().await.question(), approved_by(&rig).await), (first.clone(), vec!["heidi".to_owned()]));
    assert_eq!(rig.refused().await, [DecisionError::World]);
    rig.accounts.answer(Answer::Balance);
    assert_eq!(decide(&rig, &first, ApprovalDecision::Approve, &grace()).await.outcome(), Outcome::Ok);
}

/// Made again while its world cannot be read, the call of edited arguments still waits, as it was edited.
#[tokio::test]
async fn the_same_call_again_keeps_the_edit() {
    let (rig, heard) = (Rig::new(), EventLog::default());
    let first = asked(&rig.process(&two()).run(of("run-1")).exec(call("world__pay")).await);
    let edited = ApprovalDecision::ApproveEdited(r#"{"account":"other","cents":50}"#.into());
    let second = asked(&decide(&rig, &first, edited, &grace()).await);
    let summary = rig.waiting().await.summary;
    for answer in [Answer::Balance, Answer::Error] {
        rig.accounts.answer(answer);
        let again = rig.process(&two()).run(of("run-1").events(heard.sink())).exec(call("world__pay")).await;
        assert_eq!(asked(&again), second);
        let arguments = r#"{"account":"other","cents":50}"#.to_owned();
        assert_eq!(suspended(&heard), [(arguments, summary.clone(), second.clone())]);
    }
    // Another call under the id is not the one that waits.
    let other = ToolCall::text("c1", "world__pay", r#"{"account":"other","cents":50}"#);
    let other = rig.process(&two()).run(of("run-1")).exec(other).await;
    assert_eq!(other.outcome(), Outcome::ExecutionError);
    rig.accounts.answer(Answer::Balance);
    assert_eq!(decide(&rig, &second, ApprovalDecision::Approve, &heidi()).await.outcome(), Outcome::Ok);
    let records = rig.shared.closed().await;
    assert_eq!(records.iter().filter(|record| record.executed).count(), 1);
}

/// Edits do not let a world that always changes ask forever.
#[tokio::test]
async fn an_edit_does_not_begin_the_count_again() {
    let rig = Rig::new();
    rig.accounts.answer(Answer::Anything);
    let mut question = asked(&rig.process(&two()).run(of("run-1")).exec(call("world__pay")).await);
    for cents in 1..=4 {
        let edited = ApprovalDecision::ApproveEdited(format!(r#"{{"account":"a-1","cents":{cents}}}"#));
        question = asked(&decide(&rig, &question, edited, &grace()).await);
        let summary = rig.waiting().await.summary.expect("a sentence");
        assert!(summary.starts_with(&format!("Pays {cents} to ")), "{summary}");
        let ended = decide(&rig, &question, ApprovalDecision::Approve, &heidi()).await;
        if cents < 4 {
            of_another_world(&ended);
            question = rig.waiting().await.question();
        } else {
            assert_eq!(ended.outcome(), Outcome::Cancelled, "{}", ended.to_model());
        }
    }
    assert_eq!(rig.shared.effects(), 0);
}
