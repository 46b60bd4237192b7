//! Runs that an application continues itself: strangers, a second process, an ended lease, runs of servers and engines,
//! and the conversation of another run.

use std::sync::Mutex;

use serde_json::Value;
use tool_runtime::Event;
use tool_runtime::agent::{Conversation, LeasedRun, SavedConversation, TurnOutcome};
use tool_runtime::store::StoredDocument;

use super::*;

/// The duration of a lease of a runner.
const LEASE: Duration = Duration::from_secs(30);

fn world(what: &str) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2030-01-01T00:00:00Z".parse().expect("a time")));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    (World { store, ..World::new(what) }, clock)
}

impl World {
    async fn take(&self) -> Result<(LeasedRun, SavedConversation), &'static str> {
        let taken = self.queue().take(&self.run_id, Some("acme"), Some("ada"), "web").await;
        taken.map_err(|error| error.code())
    }

    /// Takes the run and restores its conversation under the lease, as a service does for a request.
    async fn open(&self) -> (LeasedRun, Conversation) {
        let (leased, saved) = self.take().await.expect("it is free");
        let runner = Self::runner(Arc::clone(&self.store) as _);
        let options = leased.options(RunOptions::new().principal("ada").tenant("acme"));
        let conversation = self.agent().restore(&runner, options, saved).await.expect("restored");
        (leased, conversation)
    }

    /// The run's document, as the store has it.
    async fn run_document(&self) -> Value {
        let kept = self.store.read(&[Key::run(self.run_id.as_str())]).await.expect("it reads").pop().flatten();
        json_of(&kept.expect("it is there"))
    }

    async fn tamper(&self, change: impl Fn(&mut Value)) {
        let mut json = self.run_document().await;
        change(&mut json["run"]);
        let key = Key::run(self.run_id.as_str());
        let changed: StoredDocument = document(key.clone(), &json);
        let put = move |transaction: &mut Transaction| transaction.put(changed.clone());
        self.store.update(vec![key], Box::new(put)).await.expect("written");
    }

    async fn posts(&self) -> Vec<Key> {
        let listed = self.store.list(&Query::new(DocumentKind::Post)).await.expect("a list");
        let ours = listed.into_iter().map(|listed| listed.key).filter(|key| **key.scope() == *self.run_id);
        ours.collect()
    }

    /// Returns the deciders whose decisions had no effect.
    pub(super) async fn refused(&self) -> Vec<String> {
        let records = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        let refused = decisions.filter(|decision| decision.refused().is_some());
        refused.filter_map(|decision| Some(decision.decider.as_ref()?.principal().to_owned())).collect()
    }
}

#[track_caller]
fn fenced<T>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Fenced)));
}

#[tokio::test]
async fn strangers_take_and_find_no_run() {
    let (world, _) = world("leased strangers");
    world.enqueue("Go.").await;
    let before = world.run_document().await;
    let strangers = [
        (Some("other"), Some("ada")),
        (None, Some("ada")),
        (Some("acme"), Some("bob")),
        (Some("acme"), None),
        (None, None),
    ];
    for (tenant, principal) in strangers {
        let taken = world.queue().take(&world.run_id, tenant, principal, "web").await;
        assert_eq!(taken.err().map(|error| error.code()), Some("not_found"), "{tenant:?} {principal:?}");
    }
    for (run, tenant) in [(&*world.run_id, Some("other")), (&world.run_id, None), ("nowhere", Some("acme")), ("", None)]
    {
        let found = SavedConversation::find(&*world.store, run, tenant).await;
        assert_eq!(found.err().map(|error| error.code()), Some("not_found"), "{run} {tenant:?}");
    }
    assert_eq!(world.run_document().await, before);
}

/// A run of a server or an engine is not a conversation: `RunQueue::take` refuses it, and messages that only a worker
/// reads are not posted to it.
#[tokio::test]
async fn what_is_no_conversation_is_not_taken() {
    for (what, member, value) in [("served", "state", "served"), ("driven", "document", "")] {
        let (world, _) = world(&format!("leased {what}"));
        world.enqueue("Go.").await;
        world.tamper(|run| run[member] = value.into()).await;
        let before = world.run_document().await;
        assert_eq!(world.take().await.err(), Some("not_found"), "{what}");
        let found = SavedConversation::find(&*world.store, &world.run_id, Some("acme")).await;
        assert_eq!(found.err().map(|error| error.code()), Some("not_found"), "{what}");
        assert_eq!(world.run_document().await, before, "{what}");
        if what == "driven" {
            let posted = world.queue().post(&world.run_id, Some("acme"), &Input::from("And?")).await;
            assert_eq!(posted.err().map(|error| error.code()), Some("run_of_engine"));
            assert!(world.posts().await.is_empty());
        }
    }
}

/// A process of an older version cannot read the conversation. One of the newer version continues it.
#[tokio::test]
async fn a_run_that_cannot_be_read_stays_due() {
    let (world, _) = world("leased unreadable");
    world.enqueue("Go.").await;
    let whole = world.run_document().await["run"]["document"].clone();
    world.tamper(|run| run["document"] = "{}".into()).await;
    assert_eq!(world.take().await.err(), Some("store_corrupt"));
    let found = SavedConversation::find(&*world.store, &world.run_id, Some("acme")).await;
    assert_eq!(found.err().map(|error| error.code()), Some("store_corrupt"));
    let kept = world.run_document().await;
    assert!(kept["run"]["holder"].is_null() && kept["run"]["due"].is_string(), "{kept}");
    world.tamper(|run| run["document"] = whole.clone()).await;
    with([world.lasting()], world.reaches("approval_required")).await;
}

#[tokio::test]
async fn a_lease_that_ended_reads_and_writes_nothing() {
    let (world, clock) = world("leased ended");
    world.enqueue("Go.").await;
    let (mut slow, saved) = world.take().await.expect("it is free");
    assert_eq!(world.take().await.err(), Some("run_held"));
    world.post(Input::from("And?")).await;
    slow.save(&saved, "running", None).await.expect("it has the run");
    clock.advance(LEASE);
    // Before another process has it, and afterwards.
    for is_taken in [false, true] {
        let _second = if is_taken { Some(world.take().await.expect("it is free again")) } else { None };
        let before = world.run_document().await;
        fenced(&slow.save(&saved, "running", None).await);
        fenced(&slow.save(&saved, "running", world.posts().await.pop()).await);
        fenced(&slow.release(None).await);
        fenced(&slow.post().await);
        let options = RunOptions::new().run_id(world.run_id.as_str()).principal("ada").tenant("acme");
        let run = World::runner(Arc::clone(&world.store) as _).run(slow.options(options));
        let written = run.exec(tool_runtime::ToolCall::text("z", "worker__write", r#"{"text":"late"}"#)).await;
        assert!(!written.is_ok(), "{written:?}");
        assert_eq!((world.run_document().await, world.posts().await.len()), (before, 1));
    }
    assert_eq!(world.ends().await, (vec![], BTreeMap::new()), "no record and no effect");
}

/// The owner was killed. No worker takes its run before its lease ends.
#[tokio::test]
async fn the_run_of_a_killed_owner_is_taken_after_its_lease() {
    for begins in [false, true] {
        let (world, clock) = world(&format!("leased killed {begins}"));
        let runner = World::runner(Arc::clone(&world.store) as _);
        let options = RunOptions::new().run_id(world.run_id.as_str()).principal("ada").tenant("acme");
        let mut conversation = world.agent().converse(runner.run(options));
        conversation.accept(Input::from("Go.")).await.expect("a message");
        let saved = conversation.save().await.expect("saved");
        if begins {
            drop(world.queue().begin(&saved, "web").await.expect("it is new"));
            let twice = world.queue().begin(&saved, "web").await;
            assert_eq!(twice.err().map(|error| error.code()), Some("store_duplicate"));
        } else {
            world.queue().enqueue(&saved).await.expect("it is new");
            drop(world.take().await.expect("it is free"));
        }
        assert_eq!(world.take().await.err(), Some("run_held"));
        clock.advance(LEASE);
        with([world.lasting()], world.reaches("approval_required")).await;
    }
}

/// The lease is that of the runner, and is renewed for this time.
#[tokio::test(start_paused = true)]
async fn a_run_is_leased_for_as_long_as_its_runner_says() {
    for begins in [false, true] {
        let (world, clock) = world(&format!("leased briefly {begins}"));
        world.enqueue("Go.").await;
        let (_, saved) = world.queue().find(&world.run_id, Some("acme")).await.expect("it is there");
        let catalog = tool_runtime::ToolCatalog::builder().build().expect("a catalog");
        let store =
            if begins { Arc::new(MemoryStore::with_clock(Arc::clone(&clock))) } else { Arc::clone(&world.store) };
        let runner = ToolRunner::builder(catalog, ToolPolicy::deny_all()).store(Arc::clone(&store));
        let queue = RunQueue::new(&runner.lease(Duration::from_secs(2)).build().expect("a runner"));
        let take = || queue.take(&world.run_id, Some("acme"), Some("ada"), "web");
        let held = if begins { queue.begin(&saved, "web").await } else { take().await.map(|(leased, _)| leased) };
        let held = held.expect("it is free");
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(1));
        assert_eq!(take().await.err().map(|error| error.code()), Some("run_held"), "it was renewed");
        drop(held);
        clock.advance(Duration::from_secs(2));
        take().await.expect("its lease has ended");
    }
}

#[tokio::test]
async fn the_conversation_and_the_posts_of_another_run_are_refused() {
    let (world, _) = world("leased one");
    world.enqueue("Go.").await;
    let other = World { store: Arc::clone(&world.store), ..World::new("leased other") };
    other.enqueue("Secret.").await;
    other.post(Input::from("And?")).await;
    let (leased, saved) = world.take().await.expect("it is free");
    let (_, foreign) = other.queue().find(&other.run_id, Some("acme")).await.expect("it is there");
    let before = world.run_document().await;
    fenced(&leased.save(&foreign, "running", None).await);
    // The same run id, in another tenant.
    let mut moved = serde_json::to_value(&saved).expect("JSON");
    moved["run"]["tenant"] = "other".into();
    fenced(&leased.save(&serde_json::from_value(moved).expect("a conversation"), "running", None).await);
    for key in [other.posts().await.pop().expect("a post"), Key::run("leased other"), Key::last_anchor()] {
        fenced(&leased.save(&saved, "running", Some(key)).await);
    }
    assert_eq!((world.run_document().await, other.posts().await.len()), (before, 1));
    leased.save(&saved, "running", None).await.expect("its own");
}

/// A decision comes twice while an application has the run, and once more when it was applied.
#[tokio::test]
async fn a_decision_that_comes_twice_is_refused_and_recorded() {
    let (world, _) = world("leased twice");
    world.enqueue("Go.").await;
    with([world.lasting()], world.reaches("approval_required")).await;
    let (mut leased, saved) = world.take().await.expect("it is free");
    let question = world.decide(ApprovalDecision::Approve).await;
    let again = decided(&question, ApprovalDecision::Deny(None));
    let twice = world.queue().post(&world.run_id, Some("acme"), &again).await;
    assert_eq!(twice.err().map(|error| error.code()), Some("not_pending"));
    assert_eq!(world.refused().await, ["grace"]);
    let (key, input) = leased.post().await.expect("it has the run").expect("a post");
    let runner = World::runner(Arc::clone(&world.store) as _);
    let options = leased.options(RunOptions::new().principal("ada").tenant("acme"));
    let mut conversation = world.agent().restore(&runner, options, saved).await.expect("restored");
    conversation.accept(input).await.expect("it is applied");
    leased.save(&conversation.save().await.expect("saved"), "running", Some(key)).await.expect("it has the run");
    assert!(!leased.accept_posts(&mut conversation).await.expect("it has the run"));
    let late = world.queue().decide(&world.run_id, &question, ApprovalDecision::Approve, &grace()).await;
    assert_eq!(late.err().map(|error| error.code()), Some("not_pending"));
    assert_eq!(world.refused().await, ["grace", "grace"]);
    let ended = leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    leased.release(None).await.expect("it has the run");
    assert_eq!(world.state().await, "answered");
    let (_, effects) = world.ends().await;
    assert!(effects.values().all(|times| *times == 1), "{effects:?}");
}

/// The `error` and `done` events of a request, as their codes.
#[derive(Default)]
struct Ends(Arc<Mutex<Vec<String>>>);

impl Ends {
    fn of(conversation: &mut Conversation) -> Self {
        let ends = Self::default();
        let sink = Arc::clone(&ends.0);
        conversation.events(move |event: Event| {
            let end = match event {
                Event::Error { code, .. } => format!("error {code}"),
                Event::Done { reason, .. } => format!("done {reason}"),
                _ => return,
            };
            sink.lock().expect("a list").push(end);
        });
        ends
    }

    #[track_caller]
    fn are(&self, expected: &[&str]) {
        assert_eq!(*self.0.lock().expect("a list"), expected);
    }
}

/// A service dies while it has a run, at first with a decision that it did not apply. The next one continues.
#[tokio::test]
async fn requests_decisions_and_deaths_of_a_service() {
    let (world, clock) = world("leased service");
    world.enqueue("Go.").await;
    let (mut leased, mut conversation) = world.open().await;
    let ends = Ends::of(&mut conversation);
    let ended = leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert!(matches!(ended, TurnOutcome::Waiting { .. }), "{ended:?}");
    ends.are(&["done approval_required"]);
    assert_eq!(world.state().await, "approval_required");
    leased.release(None).await.expect("it has the run");
    assert_eq!(world.state().await, "approval_required");

    // It takes the run, a decision comes, and it dies.
    let (first, _) = world.open().await;
    world.decide(ApprovalDecision::Approve).await;
    drop(first);
    assert_eq!(world.take().await.err(), Some("run_held"));
    clock.advance(LEASE);

    // The second applies the decision, and dies before the model continues.
    let (mut second, mut late) = world.open().await;
    assert!(second.accept_posts(&mut late).await.expect("it has the run"));
    assert_eq!((world.posts().await.len(), late.waiting().count()), (0, 0));
    clock.advance(LEASE);

    let (mut third, mut conversation) = world.open().await;
    // The second was only slow. Nothing that it does now is kept, and its client reads the end of the request.
    let ends = Ends::of(&mut late);
    let lost = second.receive(&mut late, Input::from("And?")).await.expect_err("the third has the run");
    assert_eq!(lost.code(), "store_fenced");
    ends.are(&["error store_fenced", "done store_fenced"]);

    assert!(!third.accept_posts(&mut conversation).await.expect("it has the run"));
    let ends = Ends::of(&mut conversation);
    let ended = third.receive(&mut conversation, Input::new()).await.expect("it has the run");
    assert!(matches!(ended, TurnOutcome::Answered { .. }), "{ended:?}");
    ends.are(&["done answered"]);
    let refused = third.receive(&mut conversation, decided(&tests::never("s1"), ApprovalDecision::Approve)).await;
    assert_eq!(refused.err().map(|error| error.code()), Some("not_pending"));
    third.release(None).await.expect("it has the run");
    assert_eq!(world.state().await, "answered");
    let (_, effects) = world.ends().await;
    assert!(effects.len() == 4 && effects.values().all(|times| *times == 1), "{effects:?}");
}

/// A decision that comes while the run is taken and not applied makes it due when it is released.
#[tokio::test]
async fn a_worker_continues_what_a_request_left() {
    let (world, _) = world("leased left");
    world.enqueue("Go.").await;
    let (mut leased, mut conversation) = world.open().await;
    leased.receive(&mut conversation, Input::new()).await.expect("it has the run");
    world.decide(ApprovalDecision::Approve).await;
    leased.release(None).await.expect("it has the run");
    with([world.lasting()], world.reaches("answered")).await;
    let (_, effects) = world.ends().await;
    assert!(effects.values().all(|times| *times == 1), "{effects:?}");
}
