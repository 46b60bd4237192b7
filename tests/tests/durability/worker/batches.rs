//! Calls of several runs that are decided together: all of the decisions take effect, or none.

use super::*;
use tool_runtime::ToolCall;
use tool_runtime::runner::ResumeError;

/// A decision, as `decide_all` takes it.
type Item = (Arc<str>, Question, ApprovalDecision);

/// Runs of one store, each with a call that waits.
async fn waiting<const N: usize>(worker: impl Fn(&World) -> Worker, names: [&str; N]) -> ([World; N], [Question; N]) {
    let store = Arc::new(MemoryStore::new());
    let worlds = names.map(|name| World { store: Arc::clone(&store), ..World::new(name) });
    let mut questions = Vec::new();
    for world in &worlds {
        world.enqueue("Go.").await;
        with([worker(world)], world.reaches("approval_required")).await;
        let of_run = RecordFilter::run(world.run_id.as_str());
        questions.push(tests::pending_calls(&*store, &of_run).await[0].question());
    }
    (worlds, questions.try_into().expect("one for each run"))
}

fn item(world: &World, question: &Question, decision: ApprovalDecision) -> Item {
    (world.run_id.as_str().into(), question.clone(), decision)
}

fn approvals(worlds: &[World], questions: &[Question]) -> Vec<Item> {
    worlds.iter().zip(questions).map(|(world, question)| item(world, question, ApprovalDecision::Approve)).collect()
}

async fn posts(worlds: &[World]) -> Vec<u32> {
    let mut posts = Vec::new();
    for world in worlds {
        posts.push(world.queue().find(&world.run_id, Some("acme")).await.expect("it is there").0.posts());
    }
    posts
}

#[tokio::test]
async fn decisions_on_several_runs_are_posted_together() {
    let (worlds, questions) = waiting(World::lasting, ["batch a", "batch b", "batch c"]).await;
    let decisions = [
        item(&worlds[0], &questions[0], ApprovalDecision::Approve),
        item(&worlds[1], &questions[1], ApprovalDecision::Deny(None)),
        item(&worlds[2], &questions[2], ApprovalDecision::ApproveEdited(r#"{"to":"eve"}"#.to_owned())),
    ];
    let posted = worlds[0].queue().decide_all(&decisions, &grace()).await.expect("all of them");
    assert!(posted.len() == 3 && posted.iter().all(Option::is_none));
    assert_eq!(posts(&worlds).await, [1, 1, 1]);
    // Each of them is decided now.
    let (question, error) = worlds[0].queue().decide_all(&decisions[2..], &grace()).await.expect_err("answered");
    assert_eq!((question.as_ref(), error.code()), (Some(&questions[2]), "not_pending"));
    for (world, sent) in worlds.iter().zip([1, 0, 1]) {
        with([world.lasting()], world.reaches("answered")).await;
        let (records, effects) = world.ends().await;
        let sends: Vec<_> = records.iter().filter(|(id, _)| id == "s1").map(|(_, outcome)| *outcome).collect();
        let expected = if sent == 1 { Outcome::Ok } else { Outcome::ApprovalDenied };
        assert_eq!(sends, [expected], "{}", world.run_id);
        assert_eq!(effects.values().filter(|times| **times == 1).count(), 3 + sent, "{}", world.run_id);
    }
}

#[tokio::test]
async fn a_refused_decision_leaves_all_calls_waiting() {
    let (worlds, questions) = waiting(World::lasting, ["batch d", "batch e"]).await;
    let all = approvals(&worlds, &questions);
    let queue = worlds[0].queue();
    let with = |last: Item| [all.clone(), vec![last]].concat();

    // An application continues this call by itself.
    let runner = World::runner(Arc::clone(&worlds[0].store) as _);
    let run = runner.run(RunOptions::new().run_id("alone").principal("ada").tenant("acme"));
    run.exec(ToolCall::text("x1", "worker__send", r#"{"to":"bob"}"#)).await;
    let of_run = RecordFilter::run("alone");
    let alone = tests::pending_calls(&*worlds[0].store, &of_run).await[0].question();

    let never = tests::never("s1");
    let a = |question: &Question| (Arc::from("batch d"), question.clone(), ApprovalDecision::Approve);
    let refused = [
        (with(a(&never)), grace(), &never, "not_allowed"),
        (with(a(&questions[1])), grace(), &questions[1], "not_allowed"),
        (with(("nowhere".into(), never.clone(), ApprovalDecision::Approve)), grace(), &never, "not_pending"),
        (with(("alone".into(), alone.clone(), ApprovalDecision::Approve)), grace(), &alone, "not_found"),
        (with(all[0].clone()), grace(), &questions[0], "not_pending"),
        (all.clone(), Decider::new("grace").tenant("globex"), &questions[0], "not_pending"),
        (all.clone(), Decider::new("ada").tenant("acme"), &questions[0], "not_allowed"),
    ];
    for (at, (decisions, decider, question, code)) in refused.into_iter().enumerate() {
        let (refused, error) = queue.decide_all(&decisions, &decider).await.expect_err("refused");
        assert_eq!((error.code(), refused.as_ref()), (code, Some(question)), "{at}");
        assert_eq!(posts(&worlds).await, [0, 0], "{at}");
    }
    assert!(queue.decide_all(&[], &grace()).await.expect("nothing to decide").is_empty());
    assert_eq!(queue.decide_all(&all, &grace()).await.expect("still waiting").len(), 2);
}

/// Edited arguments and values are read when they are posted, if the process of the decider has the tool and the
/// policy. The poster gets the violations, the refusal is recorded, and no other decision of the batch has an effect.
#[tokio::test]
async fn an_edit_that_does_not_fit_leaves_all_calls_waiting() {
    let (worlds, questions) = waiting(World::lasting, ["batch n", "batch o"]).await;
    let queue = RunQueue::new(&World::runner(Arc::clone(&worlds[0].store) as _));
    let edit = |text: &str| ApprovalDecision::ApproveEdited(text.to_owned());
    let approve = item(&worlds[0], &questions[0], ApprovalDecision::Approve);
    let refused = [
        (edit(r#"{"to":7}"#), vec![("/to", "type")]),
        (edit(r#"{"to":"eve","CANARY-key":1}"#), vec![("", "additionalProperties")]),
        (edit("{CANARY"), vec![]),
        (ApprovalDecision::Respond(r#"{"to": "CANARY"}"#.to_owned()), vec![("", "type")]),
        (ApprovalDecision::Respond("CANARY".to_owned()), vec![]),
    ];
    let number = refused.len();
    for (at, (decision, violations)) in refused.into_iter().enumerate() {
        let batch = [approve.clone(), item(&worlds[1], &questions[1], decision.clone())];
        let (question, error) = queue.decide_all(&batch, &grace()).await.expect_err("it does not fit");
        assert_eq!((question.as_ref(), error.code()), (Some(&questions[1]), "approval_mismatch"), "{at}");
        let ResumeError::Invalid(why) = &error else { panic!("{at}: {error:?}") };
        let found: Vec<_> = why.errors.iter().map(|one| (one.pointer.as_str(), one.keyword.as_str())).collect();
        assert_eq!(found, violations, "{at}");
        assert!(!error.to_string().contains("CANARY"), "{at}: {error}");
        // The same decision alone, as a post and as a decision.
        let alone = Input::new().decide(&questions[1], decision.clone(), &grace());
        assert_eq!(
            queue.post("batch o", Some("acme"), &alone).await.expect_err("refused").code(),
            error.code(),
            "{at}"
        );
        let decided = queue.decide("batch o", &questions[1], decision.clone(), &grace()).await;
        assert_eq!(decided.expect_err("refused").code(), error.code(), "{at}");
        assert_eq!(posts(&worlds).await, [0, 0], "{at}");
    }
    assert_eq!(worlds[0].refused().await, Vec::<String>::new());
    assert_eq!(worlds[1].refused().await.len(), 3 * number);
    // A process without the tools cannot read an edit: it posts it, and the worker refuses and records it.
    let blind = Input::new().decide(&questions[1], edit(r#"{"to":7}"#), &grace());
    worlds[1].post(blind).await;
    with([worlds[1].lasting()], async {
        while posts(&worlds).await[1] > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(worlds[1].refused().await.len(), 3 * number + 1);
    let batch = [approve, item(&worlds[1], &questions[1], edit(r#"{"to":"eve"}"#))];
    queue.decide_all(&batch, &grace()).await.expect("both fit");
    for world in &worlds {
        with([world.lasting()], world.reaches("answered")).await;
    }
}

/// The largest and deepest edits are refused when they are posted, without their text in an error or a record.
#[tokio::test]
async fn the_largest_edits_leave_all_calls_waiting() {
    let (worlds, questions) = waiting(World::lasting, ["batch x", "batch y"]).await;
    let queue = RunQueue::new(&World::runner(Arc::clone(&worlds[0].store) as _));
    let edit = |text: String| ApprovalDecision::ApproveEdited(text);
    let (canaries, open) = ("CANARY".repeat(1 << 17), "[".repeat(1 << 17));
    let refused = [
        edit(format!(r#"{{"to":"{canaries}"}}"#)),
        edit(format!(r#"{{"{canaries}":1}}"#)),
        edit(format!(r#"{{"to":{open}"#)),
        edit(r#"{"to":"eve","to":"CANARY"}"#.to_owned()),
        edit(open.clone()),
        edit(String::new()),
        ApprovalDecision::Respond(open),
        ApprovalDecision::Respond(format!("[\"{canaries}\"]")),
        ApprovalDecision::Respond(String::new()),
    ];
    for (at, decision) in refused.into_iter().enumerate() {
        let batch = [
            item(&worlds[0], &questions[0], ApprovalDecision::Approve),
            item(&worlds[1], &questions[1], decision.clone()),
        ];
        let (question, error) = queue.decide_all(&batch, &grace()).await.expect_err("it does not fit");
        assert_eq!((question.as_ref(), error.code()), (Some(&questions[1]), "approval_mismatch"), "{at}");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("CANARY") && told.len() < 2000, "{at}: {told}");
        assert_eq!(posts(&worlds).await, [0, 0], "{at}");
    }
    let records = worlds[0].store.records(&RecordFilter::default()).await.expect("records");
    let text = serde_json::to_string(&records).expect("JSON");
    assert!(!text.contains("CANARY") && text.len() < 100_000, "{}", text.len());
    assert!(worlds[0].refused().await.is_empty());
    // One too many, none of which is read.
    let all = vec![item(&worlds[0], &questions[0], ApprovalDecision::Approve); 257];
    let (question, error) = queue.decide_all(&all, &grace()).await.expect_err("too many");
    assert_eq!((question, error.code()), (None, StoreError::Full.code()));
    // Many decisions on one call in a post: one is recorded at most.
    let many = (0..300).fold(Input::new(), |input, _| input.decide(&questions[0], ApprovalDecision::Approve, &grace()));
    let before = worlds[0].store.records(&RecordFilter::default()).await.expect("records").len();
    assert_eq!(queue.post("batch x", Some("acme"), &many).await.expect_err("twice").code(), "not_pending");
    let after = worlds[0].store.records(&RecordFilter::default()).await.expect("records").len();
    assert!(after - before <= 1 && posts(&worlds).await == [0, 0]);
    queue.decide_all(&approvals(&worlds, &questions), &grace()).await.expect("both still wait");
}

/// The process of the decider loses its store at each of its operations, before the operation or after it.
#[tokio::test]
async fn a_process_that_ends_leaves_all_decisions_or_none() {
    let (worlds, questions) = waiting(World::lasting, ["batch f", "batch g"]).await;
    let all = approvals(&worlds, &questions);
    let mut refused = 0;
    for at in 0.. {
        let operations = AtomicU32::new(0);
        let hook = move |_: &'static str| match operations.fetch_add(1, Ordering::AcqRel) {
            before if before < at => HookAction::Pass,
            now if now == at => HookAction::Lost(StoreError::Unavailable("the store is gone".into())),
            _ => HookAction::Fail(StoreError::Unavailable("the store is gone".into())),
        };
        let store: Arc<dyn Store> = Arc::new(HookedStore::new(Arc::clone(&worlds[0].store) as _, hook));
        let decided = RunQueue::new(&World::runner(store)).decide_all(&all, &grace()).await;
        match posts(&worlds).await[..] {
            [0, 0] => assert!(decided.is_err(), "{at}"),
            // Its answer was lost.
            [1, 1] => break,
            ref others => panic!("{at}: {others:?}"),
        }
        refused += 1;
    }
    assert!(refused > 2, "{refused}");
    for world in &worlds {
        with([world.lasting()], world.reaches("answered")).await;
    }
}

#[tokio::test]
async fn of_two_people_who_decide_the_same_calls_one_decides_all() {
    for at in 0..20 {
        let names = ["h", "i", "j"].map(|name| format!("batch {name} {at}"));
        let (worlds, questions) = waiting(World::lasting, names.each_ref().map(String::as_str)).await;
        let forwards = approvals(&worlds, &questions);
        let backwards: Vec<_> = forwards.iter().rev().cloned().collect();
        let decide = |decisions: Vec<Item>, name: &'static str| {
            let queue = worlds[0].queue();
            tokio::spawn(async move { queue.decide_all(&decisions, &Decider::new(name).tenant("acme")).await.is_ok() })
        };
        let (one, other) = (decide(forwards, "grace"), decide(backwards, "heidi"));
        assert!(one.await.expect("no panic") ^ other.await.expect("no panic"));
        assert_eq!(posts(&worlds).await, [1, 1, 1]);
    }
}

#[tokio::test]
async fn approvals_of_several_people_are_noted_together() {
    let (worlds, questions) = waiting(World::worker_of_two, ["batch k", "batch l"]).await;
    let all = approvals(&worlds, &questions);
    let queue = worlds[0].queue();
    let by = |name: &str| Decider::new(name).tenant("acme");
    let noted = |results: Vec<Option<tool_runtime::ToolExecResult>>| -> Vec<_> {
        results.into_iter().map(|result| result.and_then(|result| result.approvals())).collect()
    };
    assert_eq!(noted(queue.decide_all(&all[..1], &by("grace")).await.expect("noted")), [Some((1, 2))]);
    // Grace has approved the first call, so her second batch has no effect on the other one.
    let (question, error) = queue.decide_all(&all, &by("grace")).await.expect_err("the same person");
    assert_eq!((question.as_ref(), error.code()), (Some(&questions[0]), "not_allowed"));
    // The first call has all of its approvals with this one, and the other one does not.
    assert_eq!(noted(queue.decide_all(&all, &by("heidi")).await.expect("both")), [None, Some((1, 2))]);
    assert_eq!(posts(&worlds).await, [1, 0]);
    assert_eq!(noted(queue.decide_all(&all[1..], &by("grace")).await.expect("the last")), [None]);
    for world in &worlds {
        with([world.worker_of_two()], world.reaches("answered")).await;
        assert_eq!(world.ends().await.0.len(), 6);
    }
    assert!(matches!(queue.decide_all(&all, &by("ivan")).await, Err((Some(_), ResumeError::NotWaiting(_)))));
}

/// Two calls of one conversation are approved together. One of them is decided elsewhere before the worker comes: the
/// other approval has its effect.
#[tokio::test]
async fn a_decision_that_does_not_fit_any_more_takes_no_other_with_it() {
    let world = World::new("batch m");
    world.enqueue("Send two.").await;
    with([world.lasting()], world.reaches("approval_required")).await;
    let (stored, saved) = world.queue().find(&world.run_id, Some("acme")).await.expect("it is there");
    assert_eq!(stored.posts(), 0);
    let calls = tests::pending_calls(&*world.store, &RecordFilter::default()).await;
    let questions: Vec<_> = calls.iter().map(tool_runtime::store::PendingCall::question).collect();
    let all: Vec<_> = questions.iter().map(|question| item(&world, question, ApprovalDecision::Approve)).collect();
    world.queue().decide_all(&all, &grace()).await.expect("both");
    let runner = World::runner(Arc::clone(&world.store) as _);
    let options = RunOptions::new().principal("ada").tenant("acme");
    let mut elsewhere = world.agent().restore(&runner, options, saved).await.expect("restored");
    let denied = Input::new().decide(&questions[0], ApprovalDecision::Deny(None), &grace());
    elsewhere.accept(denied).await.expect("denied here");
    drop(elsewhere);
    with([world.lasting()], world.reaches("answered")).await;
    let (records, _) = world.ends().await;
    let outcomes: Vec<_> = records.iter().map(|(_, outcome)| *outcome).collect();
    assert!(outcomes.contains(&Outcome::ApprovalDenied) && outcomes.contains(&Outcome::Ok), "{records:?}");
    assert_eq!(EFFECTS.of(&world.run_id).len(), 1);
}
