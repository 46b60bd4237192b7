//! A conversation on a workflow engine, which stores the result of each unit of work: the answer, the effects and the
//! records are the same wherever the process ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tests::world::{HookAction, HookedStore};
use tokio::sync::Notify;
use tool_runtime::agent::{
    Agent, Conversation, DisplayFn, Durable, Input, ModelClient, ModelError, ModelRequest, SavedConversation, Step,
    StepError, StepFuture, TurnOutcome,
};
use tool_runtime::runner::{ApprovalDecision, RunnerBuilder};
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store, StoreError};
use tool_runtime::testing::{ManualClock, ScriptedModel, ScriptedTurn};
use tool_runtime::wire::{Decoded, Message};
use tool_runtime::{
    Capabilities, Outcome, RunOptions, ToolCall, ToolCatalog, ToolContext, ToolError, ToolPolicy, ToolRunner,
    capability, tool,
};

/// The world outside.
#[capability(effect = state_change)]
pub(crate) trait World {
    /// Something happens. Returns whether the process dies of it.
    fn happen(&self, call: &str) -> bool;
}

#[derive(Default)]
struct Happened {
    effects: Mutex<BTreeMap<String, u32>>,
    /// The call whose process dies once it has happened.
    deadly: Option<&'static str>,
    died: Arc<Notify>,
}

impl World for Happened {
    fn happen(&self, call: &str) -> bool {
        *self.effects.lock().unwrap_or_else(PoisonError::into_inner).entry(call.to_owned()).or_default() += 1;
        let dies = self.deadly == Some(call);
        if dies {
            self.died.notify_one();
        }
        dies
    }
}

/// Writes a line.
#[tool(name = "durable__write", effect = state_change, redact = ["$"])]
async fn write(
    ctx: &ToolContext,
    world: &dyn World,
    /// The line.
    line: String,
) -> Result<String, ToolError> {
    if world.happen(ctx.call_id().as_str()) {
        std::future::pending::<()>().await;
    }
    Ok(line)
}

/// Sends a line.
#[tool(name = "durable__send", effect = external_side_effect, redact = ["$"])]
async fn send(
    ctx: &ToolContext,
    world: &dyn World,
    /// The line.
    line: String,
) -> Result<String, ToolError> {
    if world.happen(ctx.call_id().as_str()) {
        std::future::pending::<()>().await;
    }
    Ok(line)
}

/// A model that any process has: its turns depend only on the history.
struct Staged;

impl Staged {
    fn turn(at: usize) -> ScriptedTurn {
        match at {
            0 => ScriptedTurn::call("a", "durable__write", r#"{"line":"one"}"#),
            1 => ScriptedTurn::call("b", "durable__write", r#"{"line":"two"}"#).and_call(
                "c",
                "durable__write",
                r#"{"line":"three"}"#,
            ),
            2 => ScriptedTurn::call("d", "durable__send", r#"{"line":"four"}"#),
            3 => ScriptedTurn::call("e", "durable__write", r#"{"line":"five"}"#),
            _ => ScriptedTurn::text("All is written."),
        }
    }
}

#[async_trait]
impl ModelClient for Staged {
    fn name(&self) -> &'static str {
        "staged"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let at = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        ScriptedModel::new([Self::turn(at)]).complete(request, show).await
    }
}

/// Where a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before this unit is done.
    Before(usize),
    /// After it was done, before it was kept.
    After(usize),
    Never,
}

/// The end of a process.
#[derive(Debug)]
enum End {
    Cut,
    Unfinished(#[expect(dead_code, reason = "shown when a test fails")] StepError),
}

impl From<StepError> for End {
    fn from(unfinished: StepError) -> Self {
        Self::Unfinished(unfinished)
    }
}

/// The journal outlives a process: the names of the units, with their results.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<(String, String)>>>);

impl Journal {
    fn kept(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One process over a journal that outlives it.
struct Process {
    journal: Journal,
    at: AtomicUsize,
    cut: Cut,
    agent: Agent,
    runner: ToolRunner,
}

#[async_trait]
impl Durable for Process {
    type Error = End;

    async fn unit(&self, name: &str, work: StepFuture<'_>) -> Result<SavedConversation, End> {
        let at = self.at.fetch_add(1, Ordering::AcqRel);
        if let Some((before, kept)) = self.journal.kept().get(at) {
            assert_eq!(before, name, "the same unit has the same name");
            return Ok(serde_json::from_str(kept).expect("a document"));
        }
        if self.cut == Cut::Before(at) {
            return Err(End::Cut);
        }
        let saved = work.await?;
        if self.cut == Cut::After(at) {
            return Err(End::Cut);
        }
        let kept = (name.to_owned(), serde_json::to_string(&saved).expect("JSON"));
        self.journal.0.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        Ok(saved)
    }

    async fn restore(&self, saved: SavedConversation) -> Result<Conversation, End> {
        self.agent.restore(&self.runner, ada(), saved).await.map_err(|error| StepError::other(error).into())
    }
}

impl Process {
    async fn drive(&self) -> Result<String, End> {
        let mut conversation = self.agent.converse(self.runner.run(ada()));
        conversation.accept_on(self, "message", Input::from("Write.")).await?;
        loop {
            match conversation.step_on(self).await? {
                Step::Waits(calls) => {
                    assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["d"]);
                    let approved = Input::new().decide(&calls[0].question, ApprovalDecision::Approve, &tests::grace());
                    conversation.accept_on(self, "decision d", approved).await?;
                }
                Step::Ended(TurnOutcome::Answered { text }) => return Ok(text),
                Step::Ended(ended) => panic!("{ended:?}"),
                _ => {}
            }
        }
    }
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run").principal("ada")
}

struct Rig {
    store: Arc<MemoryStore>,
    world: Arc<Happened>,
}

impl Rig {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), world: Arc::new(Happened::default()) }
    }

    fn runner(&self) -> ToolRunner {
        self.builder().build().unwrap_or_else(|error| panic!("{error}"))
    }

    fn builder(&self) -> RunnerBuilder {
        let policy =
            "allowed_tools = ['durable__write', 'durable__send']\nrequire_approval_for_tools = ['durable__send']";
        ToolRunner::builder(
            ToolCatalog::builder().tool::<write>().tool::<send>().build().expect("a catalog"),
            ToolPolicy::from_toml(policy).expect("a policy"),
        )
        .capabilities(Capabilities::new().with(Arc::clone(&self.world) as Arc<dyn World>))
        .approvals(true)
        .lease(Duration::from_secs(1))
        .store(Arc::clone(&self.store))
    }

    fn process(&self, journal: &Journal, cut: Cut) -> Process {
        Process {
            journal: journal.clone(),
            at: AtomicUsize::new(0),
            cut,
            agent: Agent::new(Staged),
            runner: self.runner(),
        }
    }

    async fn outcomes(&self) -> Vec<(String, Outcome)> {
        let records = self.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(Chain::verify(&records), Ok(()));
        let calls = records.iter().filter_map(|sealed| sealed.record.as_call());
        calls.map(|record| (record.tool_call_id.to_string(), record.outcome)).collect()
    }

    fn effects(&self) -> BTreeMap<String, u32> {
        self.world.effects.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

const CALLS: [&str; 5] = ["a", "b", "c", "d", "e"];

#[tokio::test]
async fn a_conversation_survives_a_cut_at_every_unit() {
    let journal = Journal::default();
    let text = Rig::new().process(&journal, Cut::Never).drive().await.expect("it ends");
    assert_eq!(text, "All is written.");
    let units = journal.kept().len();
    assert_eq!(units, 12, "the message, five turns of the model, five calls, the decision");
    for cut in (0..units).flat_map(|at| [Cut::Before(at), Cut::After(at)]) {
        let (rig, journal) = (Rig::new(), Journal::default());
        let error = rig.process(&journal, cut).drive().await.expect_err("it is cut");
        assert!(matches!(error, End::Cut), "{error:?}");
        let text = rig.process(&journal, Cut::Never).drive().await.expect("it ends");
        assert_eq!(text, "All is written.", "{cut:?}");
        let expected: Vec<_> = CALLS.iter().map(|id| ((*id).to_owned(), Outcome::Ok)).collect();
        assert_eq!(rig.outcomes().await, expected, "{cut:?}");
        assert!(rig.effects().values().eq(&[1; 5]), "{cut:?}: {:?}", rig.effects());
    }
}

/// Kills the process of each call once, after the effect and before the tool returns.
#[test]
fn a_call_that_was_killed_is_unknown_and_does_not_happen_again() {
    for deadly in CALLS {
        let world = Arc::new(Happened { deadly: Some(deadly), ..Happened::default() });
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
        let rig = Rig { store: Arc::new(MemoryStore::with_clock(Arc::clone(&clock))), world: Arc::clone(&world) };
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");

        let (killed, journal) = (runtime(), Journal::default());
        let process = rig.process(&journal, Cut::Never);
        let mut doomed = Box::pin(async move { process.drive().await });
        killed.block_on(async {
            tokio::select! {
                _ = &mut doomed => panic!("it is killed"),
                () = world.died.notified() => {}
            }
        });
        // Neither its timers nor its destructors run again.
        std::mem::forget((killed, doomed));
        // An engine leaves the call alone until the attempt counts as gone.
        clock.advance(Duration::from_millis(1_100));

        runtime().block_on(async {
            let text = rig.process(&journal, Cut::Never).drive().await.expect("it ends");
            assert_eq!(text, "All is written.");
            let outcome = |id: &str| if id == deadly { Outcome::OutcomeUnknown } else { Outcome::Ok };
            let expected: Vec<_> = CALLS.iter().map(|id| ((*id).to_owned(), outcome(id))).collect();
            assert_eq!(rig.outcomes().await, expected);
            assert!(rig.effects().values().eq(&[1; 5]), "{:?}", rig.effects());
        });
    }
}

fn line(id: &str) -> ToolCall {
    ToolCall::text(id, "durable__write", r#"{"line":"one"}"#)
}

#[tokio::test]
async fn the_last_attempt_of_an_engine_has_the_run() {
    let rig = Rig::new();
    let (slow, next) = (rig.runner(), rig.runner());
    let first = slow.engine_lease("run", ada()).await.expect("a lease");
    let run = slow.run(first.clone());
    assert!(run.exec(line("a")).await.is_ok());
    slow.under_lease(&first, async {}).await.expect("it has the run");

    let second = next.engine_lease("run", ada()).await.expect("a lease");
    let late = slow.under_lease(&first, async { unreachable!("a later attempt has the run") }).await;
    assert!(matches!(late, Err(StoreError::Fenced)));
    next.under_lease(&second, async {}).await.expect("it has the run");
    let without = next.under_lease(&ada().run_id("run"), async { unreachable!("it has no lease") }).await;
    assert!(matches!(without, Err(StoreError::Fenced)), "options without a lease");
    assert!(!run.exec(line("b")).await.is_ok(), "the earlier attempt writes nothing");
    assert!(next.run(second.clone()).exec(line("c")).await.is_ok());
    assert_eq!(rig.outcomes().await, [("a".to_owned(), Outcome::Ok), ("c".to_owned(), Outcome::Ok)]);
    assert_eq!(rig.effects().into_keys().collect::<Vec<_>>(), ["a", "c"]);

    for stranger in [RunOptions::new().principal("bob"), ada().tenant("acme"), RunOptions::new()] {
        assert!(matches!(next.engine_lease("run", stranger).await, Err(StoreError::Duplicate)));
    }
    next.under_lease(&second, async {}).await.expect("it still has the run");
}

/// The process of an attempt is stopped in the middle of a step, and wakes after its lease. It continues only if no
/// later attempt has the run.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_stopped_within_a_step_looks_at_its_lease() {
    for (is_taken, expected) in [(false, 2), (true, 1)] {
        let rig = Rig::new();
        let runner = rig.runner();
        let leased = runner.engine_lease("run", ada()).await.expect("a lease");
        let steps = AtomicUsize::new(0);
        let work = async {
            steps.fetch_add(1, Ordering::Relaxed);
            if is_taken {
                let _later = rig.runner().engine_lease("run", ada()).await.expect("a lease");
            }
            tokio::time::sleep(Duration::from_hours(1)).await;
            steps.fetch_add(1, Ordering::Relaxed);
        };
        let ended = runner.under_lease(&leased, work).await;
        assert_eq!(matches!(ended, Err(StoreError::Fenced)), is_taken, "{ended:?}");
        assert_eq!(steps.into_inner(), expected);
    }
}

#[test]
fn an_attempt_leaves_calls_alone_that_the_process_before_may_execute() {
    // With its own clock, and with that of the store, which is years from the machine's.
    for own_clock in [true, false] {
        an_attempt_waits(own_clock);
    }
}

fn an_attempt_waits(own_clock: bool) {
    let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
    let world = Arc::new(Happened { deadly: Some("a"), ..Happened::default() });
    let rig = Rig { store: Arc::new(MemoryStore::with_clock(Arc::clone(&clock))), world: Arc::clone(&world) };
    let runner = || {
        let builder = rig.builder();
        let builder = if own_clock { builder.clock(Arc::clone(&clock)) } else { builder };
        builder.build().expect("a runner")
    };
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().expect("a runtime")
    };

    let (killed, process) = (runtime(), runner());
    let mut doomed = Box::pin(async move {
        let lease = process.engine_lease("run", ada()).await.expect("a lease");
        process.run(lease).exec(line("a")).await
    });
    killed.block_on(async {
        tokio::select! {
            _ = &mut doomed => panic!("it is killed"),
            () = world.died.notified() => {}
        }
    });
    std::mem::forget((killed, doomed));

    runtime().block_on(async {
        let runner = runner();
        // By the store's clock, the call's lease lasts, as if its process prolonged it.
        assert!(matches!(runner.engine_lease("run", ada()).await, Err(StoreError::Fenced)));
        let bob = RunOptions::new().principal("bob");
        assert!(matches!(runner.engine_lease("run", bob).await, Err(StoreError::Duplicate)), "not a call of his");
        // It ends while the attempt waits.
        let ends = async { clock.advance(Duration::from_secs(2)) };
        let (lease, ()) = tokio::join!(runner.engine_lease("run", ada()), ends);
        let again = runner.run(lease.expect("a lease")).exec(line("a")).await;
        assert_eq!(again.outcome(), Outcome::OutcomeUnknown);
        assert_eq!(rig.effects(), BTreeMap::from([("a".to_owned(), 1)]));
    });
}

/// The earlier attempt begins a call after the next one has looked, and before it loses the run. Its tool never ends.
#[tokio::test(start_paused = true)]
async fn an_attempt_waits_for_a_call_that_began_meanwhile() {
    let world = Arc::new(Happened { deadly: Some("a"), ..Happened::default() });
    let rig = Rig { world: Arc::clone(&world), ..Rig::new() };
    let slow = rig.runner();
    let run = slow.run(slow.engine_lease("run", ada()).await.expect("a lease"));
    let stopped = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stopped);
    let begins = Mutex::new(Some(async move {
        tokio::spawn(async move {
            run.exec(line("a")).await;
            stops.store(true, Ordering::Release);
        });
        world.died.notified().await;
    }));
    let hook = move |method: &'static str| match begins.lock().unwrap().take_if(|_| method == "update") {
        Some(begins) => HookAction::After(Box::pin(begins)),
        None => HookAction::Pass,
    };
    let next = rig.builder().store(HookedStore::new(Arc::clone(&rig.store) as _, hook)).build().expect("a runner");
    let asked = tokio::time::Instant::now();
    let lease = next.engine_lease("run", ada()).await;
    assert!(lease.is_ok());
    assert!(!asked.elapsed().is_zero(), "its tool may still run");
    assert!(stopped.load(Ordering::Acquire), "its lease cannot be prolonged any more");
    assert_eq!(rig.effects(), BTreeMap::from([("a".to_owned(), 1)]));
}
