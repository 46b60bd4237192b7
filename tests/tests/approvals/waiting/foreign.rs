//! A decider of another tenant, at every entry point for decisions: the answer is the same as for a call that does not
//! exist, and operators get a report.

use std::sync::Mutex;

use tool_runtime::agent::{Conversation, Input, RunQueue};
use tool_runtime::call::{DecisionError, Question};
use tool_runtime::runner::{Failure, Grant};
use tool_runtime::store::{GrantScope, Key};

use super::*;

/// The failures that operators were told: code, tool, call and run.
type Told = Arc<Mutex<Vec<[String; 4]>>>;

/// A conversation of a tenant with one call that waits. Its run is in the queue, unless an application drives it.
struct World {
    store: Arc<MemoryStore>,
    conversation: Conversation,
    queue: RunQueue,
    told: Told,
}

impl World {
    async fn new(is_queued: bool) -> Self {
        let (store, told) = (Arc::new(MemoryStore::new()), Told::default());
        let sink = Arc::clone(&told);
        let failed = move |failure: &Failure<'_>| {
            let call = failure.call_id.map_or("", CallId::as_str);
            let ids = [failure.code, failure.tool.unwrap_or(""), call, failure.run_id.unwrap_or("")];
            sink.lock().expect("a list").push(ids.map(str::to_owned));
        };
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        let runner = ToolRunner::builder(ToolCatalog::collect().expect("a catalog"), policy);
        let runner = runner.approvals(true).store(Arc::clone(&store)).failures(failed).build().expect("a runner");
        let script = [ScriptedTurn::call("person", "waiting__change", r#"{"to":3}"#), ScriptedTurn::text("Done.")];
        let mut conversation = Agent::new(ScriptedModel::new(script)).converse(runner.run(ada()));
        let ended = conversation.send("Change it.").await;
        assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
        let queue = RunQueue::new(&runner);
        if is_queued {
            queue.enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        }
        Self { store, conversation, queue, told }
    }

    fn question(&self) -> Question {
        self.conversation.waiting().next().expect("it waits").question.clone()
    }

    /// Decides at one of the doors. Returns the code and the text of the refusal.
    async fn refusal(&mut self, door: &str, question: &Question, decider: &Decider) -> (&'static str, String) {
        let (run, approve) = (self.conversation.run().clone(), ApprovalDecision::Approve);
        let input = || Input::new().decide(question, ApprovalDecision::Approve, decider);
        let grant = || Grant::allow(GrantScope::Principal);
        let error = match door {
            "resume" => run.resume(question, approve, decider).await.err(),
            "may decide" => run.may_decide(question, decider).await.err(),
            "remember" => run.remember(question, grant(), decider).await.err(),
            "check" => self.conversation.check(&input()).await.err(),
            "receive" => self.conversation.receive(input()).await.err(),
            "accept" => self.conversation.accept(input()).await.err(),
            "queue: decide" | "application: decide" => {
                self.queue.decide("run-1", question, approve, decider).await.err()
            }
            "queue: may decide" => self.queue.may_decide("run-1", question, decider).await.err(),
            "queue: remember" => self.queue.remember("run-1", question, grant(), decider).await.err(),
            "queue: post" => self.queue.post("run-1", Some("acme"), &input()).await.err(),
            "queue: post of the tenant" => self.queue.post("run-1", decider.tenant_id(), &input()).await.err(),
            _ => panic!("{door}"),
        };
        let error = error.expect(door);
        (error.code(), error.to_string())
    }

    /// The mismatches of the refused decisions in the run's chain.
    async fn recorded(&self) -> Vec<DecisionError> {
        let records = self.store.records(&RecordFilter::run("run-1")).await.expect("records");
        records.iter().filter_map(|sealed| sealed.record.as_decision()?.mismatch()).collect()
    }
}

#[tokio::test]
async fn a_decider_of_another_tenant_is_reported_at_every_door() {
    let doors = [
        ("resume", 1),
        ("may decide", 0),
        ("remember", 1),
        ("check", 1),
        ("receive", 1),
        ("accept", 1),
        ("queue: decide", 1),
        ("queue: may decide", 0),
        ("queue: remember", 1),
        ("queue: post", 1),
        ("queue: post of the tenant", 1),
        ("application: decide", 1),
    ];
    for (door, records) in doors {
        for stranger in [Decider::new("grace"), Decider::new("grace").tenant("other")] {
            let mut world = World::new(!door.starts_with("application")).await;
            let question = world.question();
            let refused = world.refusal(door, &question, &stranger).await;
            let told = world.told.lock().expect("a list").clone();
            assert_eq!(told, [["decider_tenant", "waiting__change", "person", "run-1"].map(str::to_owned)], "{door}");
            assert_eq!(world.recorded().await, vec![DecisionError::DeciderTenant; records], "{door}");

            // A call that does not exist gets the same answer, and is not reported.
            let unknown = world.refusal(door, &tests::never("nothing"), &stranger).await;
            assert_eq!(refused, unknown, "{door}");
            assert!(!refused.1.contains("tenant"), "{door}: {}", refused.1);
            assert_eq!(world.told.lock().expect("a list").len(), 1, "{door}");

            let key = Key::waiting("run-1", Some("acme"), Some("ada"), &CallId::new("person"));
            assert!(world.store.pending(&key).await.expect("a store").is_some(), "{door}: it still waits");
            let ended = world.conversation.decide(&question, ApprovalDecision::Approve, &grace()).await.expect(door);
            assert!(matches!(ended, TurnOutcome::Answered { .. }), "{door}: {ended:?}");
        }
    }
}

/// Questions that no call asks could otherwise fill the records of another tenant.
#[tokio::test]
async fn a_question_that_was_guessed_is_neither_recorded_nor_reported() {
    let mut world = World::new(true).await;
    let stranger = Decider::new("grace").tenant("other");
    let code = world.refusal("queue: post of the tenant", &tests::never("person"), &stranger).await.0;
    assert_eq!((code, world.recorded().await, world.told.lock().expect("a list").len()), ("not_found", vec![], 0));
    let input = Input::new().decide(&world.question(), ApprovalDecision::Approve, &grace());
    let code = world.queue.post("run-1", Some("other"), &input).await.expect_err("another tenant").code();
    assert_eq!((code, world.recorded().await, world.told.lock().expect("a list").len()), ("not_found", vec![], 0));
    assert_eq!(world.queue.find("run-1", Some("acme")).await.expect("it is there").0.posts(), 0);
    let question = world.question();
    world.conversation.decide(&question, ApprovalDecision::Approve, &grace()).await.expect("it waits");
}
