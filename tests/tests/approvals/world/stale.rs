//! A question that was replaced without the conversation's knowledge: by another process, by a process that was killed
//! before it saved the conversation, or because an earlier call has an unknown outcome. The conversation asks the new
//! question.

use std::sync::PoisonError;

use tool_runtime::agent::{
    Agent, Conversation, Durable, Input, RunQueue, SavedConversation, Step, StepError, StepFuture, TurnOutcome, Worker,
};
use tool_runtime::runner::SealingKeys;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};

use super::*;

const PAY: &str = r#"{"account":"a-1","cents":50}"#;

fn agent() -> Agent {
    Agent::new(ScriptedModel::new([ScriptedTurn::call("c1", "world__pay", PAY)]))
}

fn goes_on() -> Agent {
    Agent::new(ScriptedModel::new([ScriptedTurn::text("Paid.")]))
}

/// A model that never answers.
fn silent() -> Agent {
    Agent::new(ScriptedModel::new([]))
}

fn only(conversation: &Conversation) -> Question {
    let mut waiting = conversation.waiting();
    let question = waiting.next().expect("it waits").question.clone();
    assert_eq!(waiting.count(), 0);
    question
}

/// A conversation whose call waits, as a document with its question.
async fn waiting(rig: &Rig) -> (Conversation, SavedConversation, Question) {
    let mut conversation = agent().converse(rig.process(ASKS).run(of("run-1")));
    let ended = conversation.send("Pay.").await;
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    let (saved, question) = (conversation.save().await.expect("saved"), only(&conversation));
    (conversation, saved, question)
}

/// Another process replaces the question, and no conversation learns of it.
async fn replaced(rig: &Rig, question: &Question) -> Question {
    rig.accounts.set(90);
    of_another_world(&approve(&rig.run(), question).await);
    let second = rig.waiting().await.question();
    assert_ne!(*question, second);
    second
}

#[tokio::test]
async fn a_conversation_learns_of_a_question_that_another_process_replaced() {
    let rig = Rig::new();
    let (mut conversation, saved, first) = waiting(&rig).await;
    let second = replaced(&rig, &first).await;
    // An empty request shows it.
    let TurnOutcome::Waiting { calls } = conversation.receive(Input::new()).await.expect("no input") else {
        panic!("it waits")
    };
    assert_eq!((&calls[0].question, &calls[0].summary), (&second, &rig.waiting().await.summary));
    // So does the refusal of a decision on the old one.
    let third = {
        rig.accounts.set(70);
        of_another_world(&approve(&rig.run(), &second).await);
        rig.waiting().await.question()
    };
    let late = conversation.decide(&second, ApprovalDecision::Approve, &grace()).await;
    assert_eq!(late.expect_err("it asks another question").code(), "not_allowed");
    assert_eq!(only(&conversation), third);
    // And the document from before.
    let mut restored = goes_on().restore(&rig.process(ASKS), of("run-1"), &saved).await.expect("restored");
    assert_eq!(only(&restored), third);
    restored.decide(&third, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert_eq!(rig.shared.effects(), 1);
}

/// Runs a worker until something has happened.
async fn with_worker<T>(rig: &Rig, agent: Agent, happens: impl Future<Output = T>) -> T {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(agent, rig.process(ASKS)).lease(Duration::from_hours(1));
    let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let happened = happens.await;
    drop(stop);
    running.await.expect("no panic").expect("the store is there");
    happened
}

/// Waits until the document of the run shows a question.
async fn kept(rig: &Rig, question: &Question) {
    loop {
        let (_, saved) = RunQueue::new(&rig.process(ASKS)).find("run-1", Some("acme")).await.expect("it is there");
        if saved.waiting().any(|call| call.question == *question) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the run is in a state that no call waits in.
async fn ended(rig: &Rig) {
    loop {
        let (_, saved) = RunQueue::new(&rig.process(ASKS)).find("run-1", Some("acme")).await.expect("it is there");
        if saved.waiting().next().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A worker was killed after the question was replaced, and before it kept the conversation.
#[tokio::test]
async fn a_worker_keeps_the_question_of_one_that_was_killed() {
    let rig = Rig::new();
    let (conversation, saved, first) = waiting(&rig).await;
    drop(conversation);
    RunQueue::new(&rig.process(ASKS)).enqueue(&saved).await.expect("it is new");
    let second = replaced(&rig, &first).await;
    with_worker(&rig, silent(), kept(&rig, &second)).await;
    let runner = rig.process(ASKS);
    RunQueue::new(&runner).decide("run-1", &second, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    with_worker(&rig, goes_on(), ended(&rig)).await;
    assert_eq!(rig.shared.effects(), 1);
}

/// The call expires once, whatever its question was when the conversation was kept.
#[tokio::test]
async fn a_call_with_another_question_expires_once() {
    let rig = Rig::new();
    let (conversation, saved, first) = waiting(&rig).await;
    drop(conversation);
    RunQueue::new(&rig.process(ASKS)).enqueue(&saved).await.expect("it is new");
    replaced(&rig, &first).await;
    rig.shared.clock.advance(Duration::from_hours(25));
    with_worker(&rig, goes_on(), ended(&rig)).await;
    let decisions = rig.decisions().await;
    let found: Vec<_> = decisions.iter().map(|decision| (decision.decision, decision.mismatch())).collect();
    assert_eq!(found, [(DecisionKind::Approved, Some(DecisionError::World)), (DecisionKind::Expired, None)]);
    let records = rig.shared.closed().await;
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [Outcome::ApprovalExpired]);
}

/// A process without a worker takes the run for each request.
#[tokio::test]
async fn a_leased_run_asks_anew() {
    let rig = Rig::new();
    let (conversation, saved, first) = waiting(&rig).await;
    drop(conversation);
    let runner = rig.process(ASKS);
    let queue = RunQueue::new(&runner);
    queue.enqueue(&saved).await.expect("it is new");
    let take = async |agent: Agent| {
        let (leased, saved) = queue.take("run-1", Some("acme"), Some("ada"), "web").await.expect("it is free");
        let restored = agent.restore(&runner, leased.options(of("run-1")), saved).await;
        (leased, restored.expect("restored"))
    };
    let decide = async |question: &Question| {
        let posted = queue.decide("run-1", question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert!(posted.is_none());
    };
    decide(&first).await;
    rig.accounts.set(90);
    let (mut leased, mut conversation) = take(silent()).await;
    assert!(leased.accept_posts(&mut conversation).await.expect("a post"));
    let second = only(&conversation);
    assert_eq!((&second, second != first), (&rig.waiting().await.question(), true));
    leased.release(None).await.expect("released");
    // Behind its back, the question is replaced once more.
    rig.accounts.set(70);
    of_another_world(&approve(&rig.run(), &second).await);
    let (leased, conversation) = take(silent()).await;
    let third = only(&conversation);
    assert_eq!((&third, third != second), (&rig.waiting().await.question(), true));
    leased.release(None).await.expect("released");
    decide(&third).await;
    let (mut leased, mut conversation) = take(goes_on()).await;
    let ended = leased.receive(&mut conversation, Input::new()).await;
    assert!(matches!(ended, Ok(TurnOutcome::Waiting { .. })), "a turn takes no posts: {ended:?}");
    assert!(leased.accept_posts(&mut conversation).await.expect("a post"));
    let ended = leased.receive(&mut conversation, Input::new()).await.expect("no input");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(rig.shared.effects(), 1);
}

/// The bearer of a token was shown its question, so it does not become one on the new question.
#[tokio::test]
async fn a_token_of_a_replaced_question_is_refused() {
    let rig = Rig::new();
    let run = rig.run();
    asked(&run.exec(call("world__pay")).await);
    let keys = SealingKeys::new("2026-01", [7; 32]);
    let token = run.seal("c1", &keys).await.expect("it waits");
    let open = async |token: &str| rig.process(ASKS).open_token(token, &keys, of("run-1")).await;
    rig.accounts.set(90);
    let (opened, first) = open(&token).await.expect("it opens");
    of_another_world(&approve(&opened, &first).await);
    assert_eq!(open(&token).await.expect_err("another question").code(), "question");
    // A new token has the new question.
    let token = run.seal("c1", &keys).await.expect("it waits");
    let (opened, second) = open(&token).await.expect("it opens");
    assert_eq!((&second, second != first), (&rig.waiting().await.question(), true));
    assert_eq!((approve(&opened, &second).await.outcome(), rig.shared.effects()), (Outcome::Ok, 1));
}

/// Takes money by a wire that takes its time.
#[tool(name = "world__wire", effect = external_side_effect, redact = ["$"])]
async fn wire(
    world: &dyn World,
    /// Which account.
    account: String,
) -> Result<String, ToolError> {
    world.happen();
    world.door().pass().await;
    Ok(account)
}

const WIRES: &str = "require_approval_for_tools = ['world__wire']";

/// A conversation whose call waits, and whose model then gives this answer. Meanwhile a call with the same arguments
/// got an unknown outcome.
async fn with_a_twin(rig: &Rig, then: Option<ScriptedTurn>) -> (Conversation, Question) {
    let wires = ScriptedTurn::call("c1", "world__wire", r#"{"account":"a-1"}"#);
    let turns: Vec<_> = [wires].into_iter().chain(then).collect();
    let run = rig.process(WIRES).run(of("run-1"));
    let mut conversation = Agent::new(ScriptedModel::new(turns)).converse(run);
    conversation.send("Wire.").await;
    let first = only(&conversation);
    let twin = rig.process("").run(of("run-2"));
    let wired = async move { twin.exec(ToolCall::text("t1", "world__wire", r#"{"account":"a-1"}"#)).await };
    std::mem::forget(rig.shared.stuck(wired).await);
    rig.shared.clock.advance(Duration::from_secs(30));
    let closed = rig.process("").run(of("run-2")).recover(&CallId::new("t1")).await.expect("a store");
    assert_eq!(closed.expect("it began").outcome(), Outcome::OutcomeUnknown);
    rig.shared.open(9);
    (conversation, first)
}

fn shut() -> Rig {
    Rig { shared: Processes::at("2026-01-01T00:00:00Z", 0), ..Rig::new() }
}

/// A tool without a precondition: the approver was not shown that an earlier call may have had the effect.
#[tokio::test]
async fn a_conversation_asks_about_an_unknown_twin() {
    let rig = shut();
    let (mut conversation, first) = with_a_twin(&rig, Some(ScriptedTurn::text("Sent."))).await;
    let ended = conversation.decide(&first, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    let TurnOutcome::Waiting { calls } = ended else { panic!("{ended:?}") };
    assert_eq!(calls[0].refused.as_ref().and_then(|refused| refused.mismatch), Some(DecisionError::Question));
    let second = only(&conversation);
    assert_eq!((&second, second != first), (&rig.waiting().await.question(), true));
    assert!(calls[0].summary.as_deref().is_some_and(|summary| summary.contains("unknown outcome")));
    let ended = conversation.decide(&second, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(rig.shared.effects(), 2);
}

#[tokio::test]
async fn a_worker_asks_about_an_unknown_twin() {
    let rig = shut();
    let (conversation, first) = with_a_twin(&rig, None).await;
    let runner = rig.process(WIRES);
    let queue = RunQueue::new(&runner);
    queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    drop(conversation);
    queue.decide("run-1", &first, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    let worker = |agent| Worker::new(agent, rig.process(WIRES)).lease(Duration::from_hours(1));
    let until = async |agent, happens: &dyn Fn(&SavedConversation) -> bool| {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(worker(agent).run(async move { drop(stopped.await) }));
        while !happens(&queue.find("run-1", Some("acme")).await.expect("it is there").1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stop);
        running.await.expect("no panic").expect("the store is there");
    };
    until(silent(), &|saved| saved.waiting().any(|call| call.question != first)).await;
    let second = rig.waiting().await.question();
    queue.decide("run-1", &second, ApprovalDecision::Approve, &grace()).await.expect("it waits");
    until(goes_on(), &|saved| saved.waiting().next().is_none()).await;
    assert_eq!((rig.shared.effects(), rig.refused().await), (2, vec![DecisionError::Question]));
}

/// The journal of an engine: the documents of its units.
#[derive(Default)]
struct Journal(Mutex<Vec<String>>);

/// One attempt of the engine. It is cut after the work of the unit at a place, before the journal has it.
struct Attempt<'j> {
    journal: &'j Journal,
    at: AtomicU32,
    cut: Option<u32>,
    agent: Agent,
    runner: ToolRunner,
}

#[derive(Debug)]
enum End {
    Cut,
    Step(#[expect(dead_code, reason = "shown when a test fails")] StepError),
}

impl From<StepError> for End {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

#[async_trait]
impl Durable for Attempt<'_> {
    type Error = End;

    async fn unit(&self, _: &str, work: StepFuture<'_>) -> Result<SavedConversation, End> {
        let at = self.at.fetch_add(1, Ordering::AcqRel);
        let place = usize::try_from(at).expect("small");
        let kept = self.journal.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned();
        if let Some(kept) = kept {
            return Ok(serde_json::from_str(&kept).expect("a document"));
        }
        let saved = work.await?;
        if self.cut == Some(at) {
            return Err(End::Cut);
        }
        let kept = serde_json::to_string(&saved).expect("JSON");
        self.journal.0.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, End> {
        self.agent.restore(&self.runner, of("run-1"), saved).await.map_err(|error| StepError::other(error).into())
    }
}

/// Takes a message and then these decisions on the questions in turn. Returns the questions.
async fn drive(attempt: &Attempt<'_>, decisions: usize) -> Result<Vec<Question>, End> {
    let mut conversation = attempt.agent.converse(attempt.runner.run(of("run-1")));
    conversation.accept_on(attempt, "message", Input::from("Pay.")).await?;
    let mut questions = Vec::new();
    loop {
        match conversation.step_on(attempt).await? {
            Step::Waits(calls) => {
                questions.push(calls[0].question.clone());
                if questions.len() > decisions {
                    return Ok(questions);
                }
                let decided = Input::new().decide(&calls[0].question, ApprovalDecision::Approve, &grace());
                conversation.accept_on(attempt, &format!("decision {}", questions.len()), decided).await?;
            }
            Step::Ended(_) => return Ok(questions),
            _ => {}
        }
    }
}

/// An engine was killed after the question was replaced, and before its journal had it. Its next attempt asks the new
/// question, and every replay asks the same questions in the same order.
#[tokio::test]
async fn an_engine_asks_the_question_of_an_attempt_that_was_cut() {
    let rig = Rig::new();
    let journal = Journal::default();
    let attempt =
        |cut, agent| Attempt { journal: &journal, at: AtomicU32::new(0), cut, agent, runner: rig.process(ASKS) };
    let before = drive(&attempt(None, agent()), 0).await.expect("it waits");
    rig.accounts.set(90);
    let units = u32::try_from(journal.0.lock().unwrap().len()).expect("few");
    let cut = drive(&attempt(Some(units), silent()), 1).await;
    assert!(matches!(cut, Err(End::Cut)), "{cut:?}");
    let second = rig.waiting().await.question();
    let asked = drive(&attempt(None, silent()), 1).await;
    let asked = asked.unwrap_or_else(|error| panic!("{error:?} {:?}", journal.0));
    assert_eq!(asked, [before[0].clone(), second]);
    assert_eq!(drive(&attempt(None, silent()), 1).await.expect("a replay"), asked);
    let ended = drive(&attempt(None, goes_on()), 9).await.expect("it ends");
    assert_eq!((&ended, rig.shared.effects()), (&asked, 1));
    // The call has ended: the replay still asks the questions of the journal.
    assert_eq!(drive(&attempt(None, silent()), 9).await.expect("a replay"), asked);
}
