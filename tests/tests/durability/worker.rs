//! Workers: any of them continues the conversations of a store, also when one ends at any moment.

mod batches;
mod dying;
mod fair;
mod leased;
mod several;
mod skewed;
mod stopped;
mod unsaved;
mod versions;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::Shown as _;

use async_trait::async_trait;
use serde_json::json;
use tests::stored::{document, json_of};
use tests::world::{self, Effects, HookAction, HookedStore};
use tool_runtime::agent::{Agent, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, Worker};
use tool_runtime::call::{Decider, Question};
use tool_runtime::runner::ApprovalDecision;
use tool_runtime::store::{
    Anchor, Chain, DocumentKind, Key, MemoryStore, Query, RecordFilter, Store, StoreError, Transaction,
};
use tool_runtime::testing::ManualClock;
use tool_runtime::tool::Hash;
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, FinishReason, Message};
use tool_runtime::{Outcome, RunOptions, ToolContext, ToolError, ToolPolicy, ToolRunner, tool};

static EFFECTS: Effects = Effects::new();

/// Writes a note.
#[tool(name = "worker__write", effect = state_change, redact = ["$"])]
async fn write(
    ctx: &ToolContext,
    /// The note.
    text: String,
) -> Result<String, ToolError> {
    EFFECTS.happen(ctx);
    stopped::here("tool");
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(text)
}

/// Sends a note.
#[tool(name = "worker__send", effect = external_side_effect, redact = ["$"])]
fn send(
    ctx: &ToolContext,
    /// To whom.
    to: String,
) -> Result<String, ToolError> {
    EFFECTS.happen(ctx);
    Ok(to)
}

const POLICY: &str = r#"
    allowed_tools = ["rig__double", "worker__write", "worker__send"]
    parallel = 4
    require_approval_for_effects = ["external_side_effect"]
"#;

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call(CallMessage::new(id.to_owned(), name, arguments))
}

/// A model whose turns depend only on the history, in any process.
struct Plan {
    asked: Arc<AtomicU32>,
}

#[async_trait]
impl ModelClient for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        stopped::here("model");
        let said = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let text = request.messages.iter().rev().find_map(|message| match message {
            Message::User(_) => Some(message.text()),
            _ => None,
        });
        match (text.as_deref(), said) {
            (Some("Fail."), _) => Err(ModelError::connect("nobody is there")),
            (Some("Go."), 0) => {
                let parts = [
                    call("r1", "rig__double", r#"{"n":1}"#),
                    call("r2", "rig__double", r#"{"n":2}"#),
                    call("w1", "worker__write", r#"{"text":"one"}"#),
                    call("s1", "worker__send", r#"{"to":"bob"}"#),
                    call("w2", "worker__write", r#"{"text":"two"}"#),
                ];
                Ok(Decoded::new(&parts, FinishReason::ToolCalls))
            }
            (Some("Send two."), 0) => {
                let parts =
                    [call("s1", "worker__send", r#"{"to":"bob"}"#), call("s2", "worker__send", r#"{"to":"eve"}"#)];
                Ok(Decoded::new(&parts, FinishReason::ToolCalls))
            }
            (Some("Go."), 1) => {
                Ok(Decoded::new(&[call("w3", "worker__write", r#"{"text":"three"}"#)], FinishReason::ToolCalls))
            }
            _ => Ok(Decoded::new(&[Part::text("Done.")], FinishReason::Stop)),
        }
    }
}

/// The parts that the processes share.
struct World {
    store: Arc<MemoryStore>,
    asked: Arc<AtomicU32>,
    run_id: String,
}

impl World {
    fn new(run_id: impl Into<String>) -> Self {
        Self { store: Arc::new(MemoryStore::new()), asked: Arc::default(), run_id: run_id.into() }
    }

    fn agent(&self) -> Agent {
        Agent::new(Plan { asked: Arc::clone(&self.asked) })
    }

    fn runner(store: Arc<dyn Store>) -> ToolRunner {
        let catalog = world::tools().tool::<write>().tool::<send>().build().expect("a catalog");
        let policy = ToolPolicy::from_toml(POLICY).expect("a policy");
        ToolRunner::builder(catalog, policy).approvals(true).store(store).build().expect("a runner")
    }

    fn worker(&self) -> Worker {
        self.worker_on(Arc::clone(&self.store) as _)
    }

    /// A worker that keeps its lease, however busy the machine is.
    fn lasting(&self) -> Worker {
        self.worker().lease(Duration::from_hours(1))
    }

    fn worker_on(&self, store: Arc<dyn Store>) -> Worker {
        Worker::new(self.agent(), Self::runner(store)).lease(Duration::from_secs(1))
    }

    fn queue(&self) -> RunQueue {
        tests::queue(Arc::clone(&self.store))
    }

    async fn enqueue(&self, text: &str) {
        let options = RunOptions::new().run_id(self.run_id.as_str()).principal("ada").tenant("acme");
        let runner = Self::runner(Arc::clone(&self.store) as _);
        let mut conversation = self.agent().converse(runner.run(options));
        conversation.accept(Input::from(text)).await.expect("a message");
        self.queue().enqueue(&conversation.save().await.expect("saved")).await.expect("it is new");
    }

    /// The question of the one call that waits, once it does.
    async fn asked_about(&self) -> Question {
        loop {
            if let Some(call) = tests::pending_calls(&*self.store, &RecordFilter::default()).await.pop() {
                return call.question();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Decides on the one call that waits. Returns its question.
    async fn decide(&self, decision: ApprovalDecision) -> Question {
        let question = self.asked_about().await;
        self.post(decided(&question, decision)).await;
        question
    }

    async fn post(&self, input: Input) {
        self.queue().post(&self.run_id, Some("acme"), &input).await.expect("posted");
    }

    async fn state(&self) -> String {
        self.queue().find(&self.run_id, Some("acme")).await.expect("it is there").0.state.to_string()
    }

    /// Waits until the run is in a state.
    async fn reaches(&self, state: &str) {
        while self.state().await != state {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The end of the run's chain.
    async fn head(&self) -> Option<(u64, Hash)> {
        let records = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        records.last().map(|sealed| (sealed.sequence, sealed.hash))
    }

    /// The end of the run's chain in the last anchor.
    async fn anchored(&self) -> Option<(u64, Hash)> {
        let last = self.store.read(&[Key::last_anchor()]).await.expect("it reads").pop().flatten();
        let anchor: Anchor = serde_json::from_value(json_of(&last?)["last_anchor"].clone()).expect("an anchor");
        anchor.heads().find(|(run, ..)| ***run == *self.run_id).map(|(_, sequence, hash)| (sequence, hash))
    }

    /// The outcomes of all calls, and how often each took effect.
    async fn ends(&self) -> (Vec<(String, Outcome)>, BTreeMap<String, u32>) {
        let sealed = self.store.records(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        Chain::verify(&sealed).expect("whole");
        let records = self.store.calls(&RecordFilter::run(self.run_id.as_str())).await.expect("records");
        let mut records: Vec<_> =
            records.into_iter().map(|record| (record.tool_call_id.to_string(), record.outcome)).collect();
        records.sort();
        (records, EFFECTS.of(&self.run_id))
    }
}

/// Runs workers until something has happened; all of them then stop in good order.
async fn with<T>(workers: impl IntoIterator<Item = Worker>, happens: impl Future<Output = T>) -> T {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let running: Vec<_> = workers
        .into_iter()
        .map(|worker| {
            let mut stopped = stopped.clone();
            tokio::spawn(worker.run(async move { drop(stopped.wait_for(|stop| *stop).await) }))
        })
        .collect();
    let happened = happens.await;
    stop.send_replace(true);
    for worker in running {
        worker.await.expect("no panic").expect("the store is there");
    }
    happened
}

fn grace() -> Decider {
    Decider::new("grace").tenant("acme")
}

fn decided(question: &Question, decision: ApprovalDecision) -> Input {
    Input::new().decide(question, decision, &grace())
}

const ALL: [&str; 6] = ["r1", "r2", "s1", "w1", "w2", "w3"];

#[tokio::test]
async fn workers_continue_what_is_posted() {
    let world = World::new("posted");
    world.enqueue("Go.").await;
    // Two workers with one name.
    with([world.lasting(), world.lasting()], async {
        world.reaches("approval_required").await;
        world.decide(ApprovalDecision::Approve).await;
        world.post(Input::from("And now?")).await;
        world.post(Input::from("Thanks.")).await;
        while world.queue().find("posted", Some("acme")).await.expect("it is there").1.turns().len() < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.reaches("answered").await;
    })
    .await;
    let (records, effects) = world.ends().await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(effects.into_values().collect::<Vec<_>>(), [1; 4]);
    assert_eq!(world.anchored().await, world.head().await, "workers anchor what they recorded before they stop");
    let (_, saved) = world.queue().find("posted", Some("acme")).await.expect("it is there");
    let said: Vec<_> =
        saved.history().iter().filter(|one| matches!(one, Message::User(_))).map(Message::text).collect();
    assert_eq!(said, ["Go.", "And now?", "Thanks."], "in order, each once");
    assert_eq!(world.asked.load(Ordering::Acquire), 5, "the model is asked once for each turn");
}

#[tokio::test]
async fn a_run_of_another_tenant_is_unknown() {
    let world = World::new("foreign");
    world.enqueue("Hello.").await;
    let queue = world.queue();
    for (run, tenant) in [("foreign", None), ("foreign", Some("evil")), ("nonsense", Some("acme"))] {
        assert!(matches!(
            queue.post(run, tenant, &Input::from("Hi.")).await,
            Err(tool_runtime::runner::ResumeError::UnknownRun)
        ));
        assert!(matches!(queue.find(run, tenant).await, Err(tool_runtime::runner::ResumeError::UnknownRun)));
    }
    let (_, saved) = queue.find("foreign", Some("acme")).await.expect("it is there");
    let again = queue.enqueue(&saved).await;
    assert!(matches!(again, Err(tool_runtime::runner::ResumeError::Store(StoreError::Duplicate))), "{again:?}");
    for at in 0..300 {
        match queue.post("foreign", Some("acme"), &Input::from("More.")).await {
            Ok(()) => assert!(at < 256),
            Err(error) => assert_eq!((error.code(), at >= 256), ("store_full", true)),
        }
    }
}

/// Input that does not fit is dropped, and the run continues with the next input.
#[tokio::test]
async fn a_post_that_does_not_fit_holds_nothing_up() {
    let world = World::new("unfit");
    world.enqueue("Go.").await;
    let refused =
        world.queue().post("unfit", Some("acme"), &decided(&tests::never("s1"), ApprovalDecision::Approve)).await;
    assert_eq!(refused.expect_err("before its question").code(), "not_pending");
    let posts = async {
        let question = world.asked_about().await;
        let queue = world.queue();
        for (who, code) in
            [("ada", "not_allowed"), ("", "not_allowed"), ("gr\u{200b}ace", "not_allowed"), (" ", "not_allowed")]
        {
            let input = Input::new().decide(&question, ApprovalDecision::Approve, &Decider::new(who).tenant("acme"));
            let refused = queue.post("unfit", Some("acme"), &input).await;
            assert_eq!(refused.expect_err("they may not decide").code(), code, "{who:?}");
        }
        world.post(decided(&question, ApprovalDecision::ApproveEdited("{}".to_owned()))).await;
        let post = || async {
            world.queue().post("unfit", Some("acme"), &decided(&question, ApprovalDecision::Approve)).await
        };
        // The edit is in the post until a worker finds that it does not fit.
        while post().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.reaches("answered").await;
    };
    with([world.lasting()], posts).await;
    assert_eq!(world.ends().await.0, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
}

/// A decision that comes after the end is dropped, and no model is asked because of it.
#[tokio::test]
async fn a_post_that_does_not_fit_asks_no_model() {
    let world = World::new("late");
    world.enqueue("Go.").await;
    let decide = async {
        let question = world.decide(ApprovalDecision::Approve).await;
        world.reaches("answered").await;
        question
    };
    let question = with([world.lasting()], decide).await;
    let before = world.asked.load(Ordering::SeqCst);
    for question in [question, tests::never("s1"), tests::never("nonsense")] {
        let late = world.queue().post("late", Some("acme"), &decided(&question, ApprovalDecision::Approve)).await;
        assert_eq!(late.expect_err("nothing waits").code(), "not_pending");
    }
    assert!(world.store.list(&Query::new(DocumentKind::Post)).await.expect("a list").is_empty());
    with([world.lasting()], world.reaches("answered")).await;
    assert_eq!(world.asked.load(Ordering::SeqCst), before);
}

/// A person decides in a process that has no worker.
#[tokio::test]
async fn a_call_that_is_decided_elsewhere_wakes_its_run() {
    let world = World::new("elsewhere");
    world.enqueue("Go.").await;
    with([world.lasting()], world.reaches("approval_required")).await;
    let (_, saved) = world.queue().find("elsewhere", Some("acme")).await.expect("it is there");
    let runner = World::runner(Arc::clone(&world.store) as _);
    let options = RunOptions::new().principal("ada").tenant("acme");
    let run = runner.restore(saved.run().clone(), options).await.expect("restored");
    with([world.lasting()], async {
        let result = run.resume_shown("s1", ApprovalDecision::Approve, &grace()).await.expect("it waits");
        assert_eq!(result.outcome(), Outcome::Ok);
        world.reaches("answered").await;
    })
    .await;
    let (records, effects) = world.ends().await;
    assert_eq!(records, ALL.map(|id| (id.to_owned(), Outcome::Ok)));
    assert_eq!(effects["s1"], 1);
}

#[tokio::test]
async fn a_model_that_fails_is_asked_again_later() {
    // The clock stands still, so "later" does not come.
    let clock = ManualClock::at(jiff::Timestamp::now());
    let world = World { store: Arc::new(MemoryStore::with_clock(clock)), ..World::new("failing model") };
    world.enqueue("Fail.").await;
    with([world.lasting()], world.reaches("model_unreachable")).await;
    let (stored, _) = world.queue().find("failing model", Some("acme")).await.expect("it is there");
    assert!(stored.due.is_some(), "it is tried again");
    assert_eq!(world.asked.load(Ordering::Acquire), 1, "not immediately");
}

/// A worker that is told to stop gives back its runs.
#[tokio::test]
async fn a_worker_that_stops_releases_its_runs() {
    let world = World::new("draining");
    world.enqueue("Go.").await;
    // Ready before the worker begins: it leases once, finishes a step, and gives the run back.
    with([world.lasting()], async { tokio::task::yield_now().await }).await;
    let (stored, _) = world.queue().find("draining", Some("acme")).await.expect("it is there");
    assert!(format!("{stored:?}").contains("due: Some"), "{stored:?}");
    with([world.lasting()], world.reaches("approval_required")).await;
}

#[tokio::test(start_paused = true)]
async fn workers_remove_what_is_over() {
    let world = World::new("tidy");
    let key = |id: &str| Key::from_parts(DocumentKind::Account, id, "1h");
    for (id, until) in [("over", "2020-01-01T00:00:00Z"), ("now", "9000-01-01T00:00:00Z")] {
        let account = json!({"account": {"tenant": null, "principal": "ada", "holder": "principal",
            "from": "2019-12-31T23:00:00Z", "until": until, "booked": {}, "mark": 0}});
        let account = document(key(id), &account);
        let write = move |transaction: &mut Transaction| transaction.put(account.clone());
        world.store.update(vec![key(id)], Box::new(write)).await.expect("it is kept");
    }
    with([world.worker()], tokio::time::sleep(Duration::from_secs(90))).await;
    let left = world.store.read(&[key("over"), key("now")]).await.expect("it reads");
    assert_eq!(left.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
}

/// A store that is away when the worker starts is waited for; one that takes no writes is not worked on.
#[tokio::test(start_paused = true)]
async fn a_worker_waits_for_its_store() {
    let world = World::new("away");
    world.enqueue("Hello.").await;
    let asked = Arc::new(AtomicU32::new(0));
    let failing = |away: u32, error: fn() -> StoreError| {
        let asked = Arc::clone(&asked);
        let hook = move |_: &'static str| match asked.fetch_add(1, Ordering::AcqRel) {
            at if at < away => HookAction::Fail(error()),
            _ => HookAction::Pass,
        };
        world.worker_on(Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook)))
    };
    let away = || StoreError::Unavailable("the server is away".into());
    with([failing(20, away)], world.reaches("answered")).await;
    assert!(asked.load(Ordering::Acquire) > 20, "it came back after a while");

    asked.store(0, Ordering::Release);
    let error = failing(u32::MAX, away).run(std::future::pending()).await.expect_err("it stays away");
    assert_eq!(error.code(), "store_unavailable");
    let tries = asked.load(Ordering::Acquire);
    assert!((20..=40).contains(&tries), "for half a minute, once a second: {tries}");

    asked.store(0, Ordering::Release);
    let replica = failing(u32::MAX, || StoreError::ReadOnly("a replica".into()));
    let error = replica.run(std::future::pending()).await.expect_err("it cannot write");
    assert_eq!((error.code(), asked.load(Ordering::Acquire)), ("store_read_only", 1));
}

/// Each operation of the store panics once. The worker continues, and the calls happen once.
#[tokio::test(start_paused = true)]
async fn a_worker_survives_a_store_that_panics() {
    for at in 0.. {
        let world = World::new(format!("panics {at}"));
        world.enqueue("Hello.").await;
        let asked = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&asked);
        let hook = move |method: &'static str| {
            assert!(counted.fetch_add(1, Ordering::AcqRel) != at, "the store's {method}");
            HookAction::Pass
        };
        let worker = world.worker_on(Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook)));
        with([worker], world.reaches("answered")).await;
        if asked.load(Ordering::Acquire) <= at {
            break;
        }
    }
}

/// A decision is carried out after another one has read the call, and before that one is posted.
#[tokio::test]
async fn a_decision_that_another_overtakes_is_refused() {
    let world = World::new("overtaken");
    world.enqueue("Go.").await;
    let carried_out = async {
        let question = world.asked_about().await;
        let other = World { store: Arc::clone(&world.store), asked: Arc::default(), run_id: world.run_id.clone() };
        let first = decided(&question, ApprovalDecision::Approve);
        let overtakes = Mutex::new(Some(async move {
            other.post(first).await;
            other.reaches("answered").await;
        }));
        let hook = move |method: &'static str| match overtakes.lock().unwrap().take_if(|_| method == "update") {
            Some(overtakes) => HookAction::After(Box::pin(overtakes)),
            None => HookAction::Pass,
        };
        let queue = RunQueue::new(&World::runner(Arc::new(HookedStore::new(Arc::clone(&world.store) as _, hook))));
        let second = queue.post("overtaken", Some("acme"), &decided(&question, ApprovalDecision::Approve)).await;
        assert!(matches!(second, Err(tool_runtime::runner::ResumeError::NotWaiting(_))), "{second:?}");
    };
    with([world.lasting()], carried_out).await;
}
