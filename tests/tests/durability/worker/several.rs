//! Calls of workers that need several approvals: a process records each approval at once, and posts the last one to the
//! run.

use super::*;
use tool_runtime::runner::ResumeError;

impl World {
    fn runner_of_two(store: Arc<dyn Store>) -> ToolRunner {
        let catalog = world::tools().tool::<write>().tool::<send>().build().expect("a catalog");
        let policy = ToolPolicy::from_toml(&format!("{POLICY}\n[approvals]\nrequired = 2")).expect("a policy");
        ToolRunner::builder(catalog, policy).approvals(true).store(store).build().expect("a runner")
    }

    pub(super) fn worker_of_two(&self) -> Worker {
        Worker::new(self.agent(), Self::runner_of_two(Arc::clone(&self.store) as _)).lease(Duration::from_hours(1))
    }

    /// Enqueues a conversation with a call that needs two people, and waits until it waits.
    async fn waits_for_two(&self) -> Question {
        let options = RunOptions::new().run_id(self.run_id.as_str()).principal("ada").tenant("acme");
        let runner = Self::runner_of_two(Arc::clone(&self.store) as _);
        let mut conversation = self.agent().converse(runner.run(options));
        conversation.accept(Input::from("Go.")).await.expect("a message");
        self.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
        with([self.worker_of_two()], self.reaches("approval_required")).await;
        self.asked_about().await
    }

    async fn posts_of(&self) -> u32 {
        self.queue().find(&self.run_id, Some("acme")).await.expect("it is there").0.posts()
    }

    /// The deciders in the chain, each with the number of approvals. A refused decision has none.
    async fn deciders(&self) -> Vec<(String, Option<(u32, u32)>)> {
        let records = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        let decisions = records.iter().filter_map(|sealed| sealed.record.as_decision());
        let by = |decider: Option<&Decider>| decider.map(|it| it.principal().to_owned()).unwrap_or_default();
        decisions.map(|decision| (by(decision.decider.as_ref()), decision.approvals)).collect()
    }
}

fn by(name: &str) -> Decider {
    Decider::new(name).tenant("acme")
}

fn approves(question: &Question, name: &str) -> Input {
    Input::new().decide(question, ApprovalDecision::Approve, &by(name))
}

/// One person cannot answer in the place of a tool whose call needs two.
#[tokio::test]
async fn an_answer_in_the_tools_place_is_refused_when_it_is_posted() {
    let world = World::new("an answer of two");
    let question = world.waits_for_two().await;
    let queue = RunQueue::new(&World::runner_of_two(Arc::clone(&world.store) as _));
    let respond = ApprovalDecision::Respond(r#""sent""#.to_owned());
    let input = Input::new().decide(&question, respond, &by("grace"));
    let refused = queue.post(&world.run_id, Some("acme"), &input).await.expect_err("it takes two");
    assert_eq!((refused.code(), world.posts_of().await), ("several_deciders", 0));
    assert_eq!(world.deciders().await, [("grace".to_owned(), None)]);
}

#[tokio::test]
async fn the_last_approval_is_posted_and_carried_out_once() {
    let world = World::new("two people");
    let question = world.waits_for_two().await;
    // No worker runs: the process of the decider has the store only.
    let approve = |name: &'static str| {
        let (queue, question, run_id) = (world.queue(), question.clone(), world.run_id.clone());
        async move { queue.decide(&run_id, &question, ApprovalDecision::Approve, &by(name)).await }
    };
    let first = approve("grace").await.expect("it counts").expect("it is noted here");
    assert_eq!((first.outcome(), first.approvals()), (Outcome::ApprovalRequired, Some((1, 2))));
    assert!(matches!(approve("grace").await, Err(ResumeError::NotAllowed(_))));
    assert_eq!(world.posts_of().await, 0);
    assert!(approve("heidi").await.expect("it counts").is_none(), "posted");
    assert_eq!(world.posts_of().await, 1);
    // The call has its approvals, and its run finds them.
    assert_eq!(approve("ivan").await.expect_err("answered").code(), "not_pending");
    with([world.worker_of_two(), world.worker_of_two()], world.reaches("answered")).await;
    let (records, effects) = world.ends().await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(effects.into_values().collect::<Vec<_>>(), [1; 4]);
    let expected = [("grace", Some((1, 2))), ("grace", None), ("ivan", None), ("heidi", Some((2, 2)))];
    assert_eq!(world.deciders().await, expected.map(|(name, approvals)| (name.to_owned(), approvals)));
}

#[tokio::test]
async fn a_post_notes_what_does_not_suffice_and_keeps_the_rest() {
    let world = World::new("two posts");
    let question = world.waits_for_two().await;
    world.post(approves(&question, "grace")).await;
    assert_eq!(world.posts_of().await, 0, "nothing is left for the run");
    let again = world.queue().post(&world.run_id, Some("acme"), &approves(&question, "grace")).await;
    assert_eq!(again.expect_err("the same person").code(), "not_allowed");
    // The saved conversation is older than the approval; the process that continues it reads the store.
    world.post(approves(&question, "heidi")).await;
    assert_eq!(world.posts_of().await, 1);
    with([world.worker_of_two()], world.reaches("answered")).await;
    assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
}

/// One person edits: a worker notes it, and the call asks another question.
#[tokio::test]
async fn an_edit_is_noted_by_the_worker() {
    let world = World::new("two edit");
    let question = world.waits_for_two().await;
    world.post(approves(&question, "grace")).await;
    let edited = ApprovalDecision::ApproveEdited(r#"{"to":"eve"}"#.to_owned());
    world.post(Input::new().decide(&question, edited, &by("heidi"))).await;
    let decide = async {
        let asked = loop {
            let asked = world.asked_about().await;
            if asked != question {
                break asked;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let late = world.queue().post(&world.run_id, Some("acme"), &approves(&question, "ivan")).await;
        assert_eq!(late.expect_err("another question").code(), "not_allowed");
        world.post(approves(&asked, "grace")).await;
        world.reaches("answered").await;
    };
    with([world.worker_of_two()], decide).await;
    assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    let counted: Vec<_> = world.deciders().await.into_iter().filter_map(|(name, given)| Some((name, given?))).collect();
    let expected = [("grace", (1, 2)), ("heidi", (1, 2)), ("grace", (2, 2))];
    assert_eq!(counted, expected.map(|(name, given)| (name.to_owned(), given)));
}

/// The process of the second decider loses its store at each of its operations, before the operation or after it. The
/// first approval stays, and a repeated second one counts once.
#[tokio::test]
async fn an_approval_survives_the_end_of_the_next_deciders_process() {
    for happens in [false, true] {
        let mut at = 0;
        loop {
            let world = World::new(format!("two end {happens} {at}"));
            let question = world.waits_for_two().await;
            world.post(approves(&question, "grace")).await;
            let operations = AtomicU32::new(0);
            let hook = move |_: &'static str| {
                let gone = || StoreError::Unavailable("the store is gone".into());
                match (operations.fetch_add(1, Ordering::AcqRel), happens) {
                    (before, _) if before < at => HookAction::Pass,
                    (now, true) if now == at => HookAction::Lost(gone()),
                    _ => HookAction::Fail(gone()),
                }
            };
            let store: Arc<dyn Store> = Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook));
            let (queue, heidi) = (RunQueue::new(&World::runner_of_two(store)), by("heidi"));
            let decide = |queue: RunQueue| {
                let (run_id, question, heidi) = (world.run_id.clone(), question.clone(), heidi.clone());
                async move { queue.decide(&run_id, &question, ApprovalDecision::Approve, &heidi).await }
            };
            let decided = decide(queue).await;
            match decide(world.queue()).await {
                Ok(None) => assert!(decided.is_err(), "{at}"),
                // The first attempt was posted.
                Err(ResumeError::NotWaiting(_)) => {}
                other => panic!("{at}: {other:?}"),
            }
            assert_eq!(world.posts_of().await, 1, "{at}");
            if decided.is_ok() {
                with([world.worker_of_two()], world.reaches("answered")).await;
                assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
                break;
            }
            at += 1;
        }
    }
}

/// The process that noted a person's edit is killed before it removes the post.
#[tokio::test]
async fn an_edit_that_was_noted_is_no_second_decision() {
    let world = World::new("two edits unsaved");
    let question = world.waits_for_two().await;
    let edited = ApprovalDecision::ApproveEdited(r#"{"to":"eve"}"#.to_owned());
    world.post(decided(&question, edited)).await;
    let runner = World::runner_of_two(Arc::clone(&world.store) as _);
    let options = || RunOptions::new().principal("ada").tenant("acme");
    for _ in 0..2 {
        // Each process has the run and saves nothing.
        let (_, saved) = world.queue().find(&world.run_id, Some("acme")).await.expect("it is there");
        let (mut leased, _) = world.queue().take(&world.run_id, Some("acme"), Some("ada"), "web").await.expect("free");
        let mut conversation =
            world.agent().restore(&runner, leased.options(options()), saved).await.expect("restored");
        let (_, input) = leased.post().await.expect("it has the run").expect("a post");
        conversation.accept(input).await.expect("it fits");
        let waits = conversation.waiting().next().expect("for another person");
        assert!(waits.question != question && waits.approvals.len() == 1, "{waits:?}");
        leased.release(None).await.expect("it has the run");
    }
    assert_eq!(world.refused().await, [""; 0]);
}
