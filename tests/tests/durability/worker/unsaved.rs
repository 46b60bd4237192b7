//! Processes that are killed before the conversation was saved. After a call was suspended, it waits in the store, and
//! the document has it as queued; the next process takes input before it takes a step. After a decision was carried
//! out, the next process gets it again.

use tool_runtime::agent::{Conversation, LeasedRun, SavedConversation, Step, TurnOutcome};
use tool_runtime::call::{ClientAnswer, DecisionError};
use tool_runtime::store::DecisionRecord;
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{Call, ToolCatalog, ToolComponent};

use super::*;

/// The duration of a lease of `RunQueue::take`.
const LEASE: Duration = Duration::from_secs(30);

fn world(what: &str) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    (World { store, ..World::new(what) }, clock)
}

fn ada() -> RunOptions {
    RunOptions::new().principal("ada").tenant("acme")
}

impl World {
    async fn opened(&self) -> (LeasedRun, Conversation) {
        let (leased, saved) = self.queue().take(&self.run_id, Some("acme"), Some("ada"), "web").await.expect("free");
        let runner = Self::runner(Arc::clone(&self.store) as _);
        let conversation = self.agent().restore(&runner, leased.options(ada()), saved).await.expect("restored");
        (leased, conversation)
    }

    /// A process takes the run and is killed between the suspension of a call and the save after it.
    async fn is_killed_before_it_saves(&self, clock: &ManualClock) {
        let (leased, mut conversation) = self.opened().await;
        while self.pending().await == 0 {
            leased.save(&conversation.save().await.expect("saved"), "running", None).await.expect("it has the run");
            conversation.step().await;
        }
        drop((leased, conversation));
        clock.advance(LEASE);
    }

    async fn pending(&self) -> usize {
        tests::pending_calls(&*self.store, &RecordFilter::default()).await.len()
    }

    async fn decisions(&self) -> Vec<DecisionRecord> {
        let records = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        records.iter().filter_map(|sealed| sealed.record.as_decision().cloned()).collect()
    }

    async fn outcome(&self, id: &str) -> Option<Outcome> {
        self.ends().await.0.into_iter().find(|(ended, _)| ended == id).map(|(_, outcome)| outcome)
    }
}

fn effects_of(effects: &BTreeMap<String, u32>, id: &str) -> u32 {
    effects.get(id).copied().unwrap_or(0)
}

#[tokio::test]
async fn a_posted_decision_is_taken_before_the_next_step() {
    let (world, clock) = world("unsaved decision");
    world.enqueue("Go.").await;
    world.is_killed_before_it_saves(&clock).await;
    world.decide(ApprovalDecision::Approve).await;
    let (mut leased, mut conversation) = world.opened().await;
    assert_eq!(conversation.waiting().count(), 1, "the store has the call as waiting");
    assert!(leased.accept_posts(&mut conversation).await.expect("it has the run"));
    let decisions = world.decisions().await;
    assert!(matches!(&decisions[..], [decision] if decision.refused().is_none()), "{decisions:?}");
    let ended = leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    let (records, effects) = world.ends().await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert!(effects.len() == 4 && effects.values().all(|times| *times == 1), "{effects:?}");
}

#[tokio::test]
async fn a_message_abandons_the_call() {
    let (world, clock) = world("unsaved message");
    world.enqueue("Go.").await;
    world.is_killed_before_it_saves(&clock).await;
    let question = world.asked_about().await;
    let (mut leased, mut conversation) = world.opened().await;
    leased.receive(&mut conversation, Input::from("Never mind.")).await.expect("it has the run");
    leased.release(None).await.expect("it has the run");
    assert_eq!((world.pending().await, world.outcome("s1").await), (0, Some(Outcome::Cancelled)));
    let late = world.queue().decide(&world.run_id, &question, ApprovalDecision::Approve, &grace()).await;
    assert_eq!(late.err().map(|error| error.code()), Some("not_pending"));
    assert_eq!(effects_of(&world.ends().await.1, "s1"), 0, "the model read that it did not run");
}

/// An application keeps the documents itself.
#[tokio::test]
async fn a_message_abandons_the_call_of_a_document() {
    for saves in [false, true] {
        let (world, _) = world(&format!("unsaved document {saves}"));
        let runner = World::runner(Arc::clone(&world.store) as _);
        let mut conversation = world.agent().converse(runner.run(ada().run_id(world.run_id.as_str())));
        conversation.accept(Input::from("Go.")).await.expect("a message");
        let mut saved: SavedConversation = conversation.save().await.expect("saved");
        while world.pending().await == 0 {
            saved = conversation.save().await.expect("saved");
            assert!(matches!(conversation.step().await, Step::Asked | Step::Ran));
        }
        drop(conversation);
        let question = world.asked_about().await;
        let mut conversation = world.agent().restore(&runner, ada(), &saved).await.expect("restored");
        if saves {
            let saved = conversation.save().await.expect("saved");
            assert_eq!(saved.waiting().count(), 1);
            conversation = world.agent().restore(&runner, ada(), &saved).await.expect("restored");
        }
        conversation.accept(Input::from("Never mind.")).await.expect("a message");
        assert_eq!((world.pending().await, world.outcome("s1").await), (0, Some(Outcome::Cancelled)));
        let late = world.queue().decide(&world.run_id, &question, ApprovalDecision::Approve, &grace()).await;
        assert_eq!(late.err().map(|error| error.code()), Some("not_pending"));
        assert_eq!(effects_of(&world.ends().await.1, "s1"), 0);
    }
}

/// A decision that comes together with one that is refused is refused, too.
#[tokio::test]
async fn a_decision_that_is_refused_with_another_has_a_record() {
    let (world, _) = world("unsaved together");
    world.enqueue("Go.").await;
    let (mut leased, mut conversation) = world.opened().await;
    leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    let question = world.asked_about().await;
    let both =
        decided(&question, ApprovalDecision::Approve).decide(&tests::never("w1"), ApprovalDecision::Approve, &grace());
    let refused = leased.receive(&mut conversation, both).await.err();
    assert_eq!(refused.map(|error| error.code()), Some("not_pending"));
    let refused: Vec<_> = world
        .decisions()
        .await
        .into_iter()
        .map(|decision| (decision.call_id.to_string(), decision.mismatch()))
        .collect();
    let not_pending = Some(DecisionError::NotPending);
    assert_eq!(refused, [("s1".to_owned(), not_pending), ("w1".to_owned(), not_pending)]);
    assert_eq!((world.pending().await, effects_of(&world.ends().await.1, "s1")), (1, 0));
}

/// The process that carried out a posted decision is killed before it saves. The person decided once.
#[tokio::test]
async fn a_post_that_was_carried_out_is_no_second_decision() {
    for decision in [
        ApprovalDecision::Approve,
        ApprovalDecision::ApproveEdited(r#"{"to":"eve"}"#.to_owned()),
        ApprovalDecision::Deny(Some("Not now.".to_owned())),
        ApprovalDecision::Respond(r#""sent""#.to_owned()),
    ] {
        for receives_first in [false, true] {
            let (world, clock) = world(&format!("unsaved post {decision:?} {receives_first}"));
            world.enqueue("Go.").await;
            world.is_killed_before_it_saves(&clock).await;
            let question = world.asked_about().await;
            world.post(decided(&question, decision.clone()).text("And then?")).await;
            let (mut leased, mut conversation) = world.opened().await;
            let (_, input) = leased.post().await.expect("it has the run").expect("a post");
            conversation.accept(input).await.expect("it fits");
            drop((leased, conversation));
            clock.advance(LEASE);

            let (mut leased, mut conversation) = world.opened().await;
            if receives_first {
                leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
                assert_eq!(conversation.waiting().count(), 0, "the store has the result");
            }
            assert!(leased.accept_posts(&mut conversation).await.expect("it has the run"));
            let decisions = world.decisions().await;
            assert!(matches!(&decisions[..], [one] if one.refused().is_none()), "{decision:?}: {decisions:?}");
            leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
            let said = conversation.history().iter().filter(|said| matches!(said, Message::User(_))).count();
            assert_eq!(said, 2, "the message of the post is not lost");
            assert!(effects_of(&world.ends().await.1, "s1") <= 1);
        }
    }
}

/// An application keeps the documents itself, and delivers a decision again after it was killed.
#[tokio::test]
async fn a_decision_that_a_restored_conversation_gets_again_is_no_second_decision() {
    let (world, _) = world("unsaved again");
    let runner = World::runner(Arc::clone(&world.store) as _);
    let mut conversation = world.agent().converse(runner.run(ada().run_id(world.run_id.as_str())));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    let (saved, question) = (conversation.save().await.expect("saved"), world.asked_about().await);
    conversation.accept(decided(&question, ApprovalDecision::Approve)).await.expect("it fits");

    let mut restored = world.agent().restore(&runner, ada(), &saved).await.expect("restored");
    let ended = restored.receive(decided(&question, ApprovalDecision::Approve)).await.expect("it fits");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    assert_eq!(world.decisions().await.len(), 1);
    // Another verdict, and another person, are second decisions.
    let heidi = Decider::new("heidi").tenant("acme");
    let denied = decided(&question, ApprovalDecision::Deny(None));
    for second in [denied, Input::new().decide(&question, ApprovalDecision::Approve, &heidi)] {
        let mut restored = world.agent().restore(&runner, ada(), &saved).await.expect("restored");
        restored.receive(second).await.expect("the store has the result");
    }
    assert_eq!(world.refused().await, ["grace", "heidi"]);
}

/// Where the user's cursor is.
#[tool(name = "worker__cursor", effect = read_only, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"])]
struct Cursor {}

impl ToolComponent for Cursor {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        Ok(true)
    }
}

/// A post with a client's answer and a message was applied by a process that was killed before it saved.
#[tokio::test]
async fn the_message_of_a_post_whose_answer_was_taken_is_not_lost() {
    let (world, clock) = world("unsaved answer");
    let catalog = ToolCatalog::builder().tool::<Cursor>().build().expect("a catalog");
    let policy = ToolPolicy::allow(["worker__cursor"]);
    let runner = ToolRunner::builder(catalog, policy).store(Arc::clone(&world.store)).build().expect("a runner");
    let script =
        [ScriptedTurn::call("c1", "worker__cursor", "{}"), ScriptedTurn::text("First."), ScriptedTurn::text("Second.")];
    let agent = Agent::new(ScriptedModel::new(script));
    let mut conversation = agent.converse(runner.run(ada().run_id(world.run_id.as_str())));
    assert!(matches!(conversation.send("Go.").await, TurnOutcome::Waiting { .. }));
    world.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    world.post(Input::new().answer(ClientAnswer::value("c1", r#""here""#)).text("And then?")).await;
    let opened = async || {
        let (leased, saved) = world.queue().take(&world.run_id, Some("acme"), Some("ada"), "web").await.expect("free");
        let conversation = agent.restore(&runner, leased.options(ada()), saved).await.expect("restored");
        (leased, conversation)
    };
    let (mut leased, mut conversation) = opened().await;
    let (_, input) = leased.post().await.expect("it has the run").expect("a post");
    conversation.accept(input).await.expect("it fits");
    drop((leased, conversation));
    clock.advance(LEASE);

    let (mut leased, mut conversation) = opened().await;
    leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert!(leased.accept_posts(&mut conversation).await.expect("it has the run"));
    leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert_eq!(conversation.history().last().map(Message::text).as_deref(), Some("Second."));
}
