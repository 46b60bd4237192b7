//! A conversation as units that an engine keeps: the same answer, effects and records wherever the process ends.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tool_runtime::agent::{
    Agent, Durable, Incoming, ModelClient, ModelError, ModelErrorKind, ModelRequest, ScriptedModel, ScriptedTurn, Show,
    Stepped, Unit, UnitError, drive,
};
use tool_runtime::call::Decider;
use tool_runtime::runner::{ApprovalDecision, ToolRunner};
use tool_runtime::store::{Chain, ManualClock, MemoryStore, RecordFilter, Store, StoreError};
use tool_runtime::wire::{Decoded, Message};
use tool_runtime::{
    Capabilities, Outcome, RunOptions, ToolCatalog, ToolContext, ToolError, ToolPolicy, capability, tool,
};

/// The world outside.
#[capability(effect = state_change)]
pub trait World {
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

/// A model that any process has: what it says follows from the history. The turn that fails does so once.
struct Staged {
    fails: Mutex<Option<ModelErrorKind>>,
}

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
    fn name(&self) -> &str {
        "staged"
    }

    async fn complete(&self, request: ModelRequest<'_>, show: &mut Show<'_>) -> Result<Decoded, ModelError> {
        let at = request.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        if let Some(kind) = self.fails.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(ModelError::new(kind, "as the test says"));
        }
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

/// What ends a process.
#[derive(Debug)]
enum End {
    Cut,
    Unit(UnitError),
}

/// What outlives a process.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn kept(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, stepped: &Stepped) {
        let text = serde_json::to_string(stepped).expect("JSON");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

/// One process over a journal that outlives it.
struct Process {
    journal: Journal,
    at: usize,
    cut: Cut,
    agent: Agent,
    runner: ToolRunner,
    /// What is brought to the call that waits, in order.
    brings: Vec<Incoming>,
}

impl Durable for Process {
    type Error = End;

    async fn unit(&mut self, unit: Unit) -> Result<Stepped, End> {
        let at = self.at;
        self.at += 1;
        if let Some(kept) = self.journal.kept().get(at) {
            return Ok(serde_json::from_str(kept).expect("a document"));
        }
        if self.cut == Cut::Before(at) {
            return Err(End::Cut);
        }
        let options = RunOptions::new().run_id("run").principal("ada");
        let stepped = unit.perform(&self.agent, &self.runner, options).await.map_err(End::Unit)?;
        if self.cut == Cut::After(at) {
            return Err(End::Cut);
        }
        self.journal.keep(&stepped);
        Ok(stepped)
    }

    async fn wait(&mut self, stepped: &Stepped) -> Result<Option<Incoming>, End> {
        assert_eq!(stepped.waiting().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["d"]);
        Ok((!self.brings.is_empty()).then(|| self.brings.remove(0)))
    }
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
        let policy = "allowed_tools = ['durable__write', 'durable__send']\nrequire_approval_for_tools = ['durable__send']";
        ToolRunner::builder(
            ToolCatalog::builder().tool::<write>().tool::<send>().build().expect("a catalog"),
            ToolPolicy::from_toml(policy).expect("a policy"),
        )
        .capabilities(Capabilities::new().with(Arc::clone(&self.world) as Arc<dyn World>))
        .approvals(true)
        .lease(Duration::from_secs(1))
        .store(Arc::clone(&self.store))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
    }

    fn process(&self, journal: &Journal, cut: Cut) -> Process {
        let agent = Agent::new(Staged { fails: Mutex::new(None) });
        Process { journal: journal.clone(), at: 0, cut, agent, runner: self.runner(), brings: vec![approved()] }
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

fn approved() -> Incoming {
    Incoming::new().decide("d", ApprovalDecision::Approve, &Decider::new("grace"))
}

fn first() -> Unit {
    Unit::begin(Incoming::from("Write."))
}

const CALLS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn all(outcome: Outcome) -> Vec<(String, Outcome)> {
    CALLS.iter().map(|id| ((*id).to_owned(), outcome)).collect()
}

#[tokio::test]
async fn a_conversation_survives_a_cut_at_every_unit() {
    let journal = Journal::default();
    let ended = drive(&mut Rig::new().process(&journal, Cut::Never), first()).await.expect("it ends");
    assert_eq!((ended.code(), ended.text(), ended.is_end()), ("answered", "All is written.", true));
    let units = journal.kept().len();
    assert_eq!(units, 14, "begin, five turns, five calls, the wait, the decision, the end");
    for cut in (0..units).flat_map(|at| [Cut::Before(at), Cut::After(at)]) {
        let (rig, journal) = (Rig::new(), Journal::default());
        let error = drive(&mut rig.process(&journal, cut), first()).await.expect_err("it is cut");
        assert!(matches!(error, End::Cut), "{error:?}");
        let ended = drive(&mut rig.process(&journal, Cut::Never), first()).await.expect("it ends");
        assert_eq!(ended.text(), "All is written.", "{cut:?}");
        // A call that was found waiting needs no unit of its own.
        assert!((units - 1..=units).contains(&journal.kept().len()), "{cut:?}");
        assert_eq!(rig.outcomes().await, all(Outcome::Ok), "{cut:?}");
        assert!(rig.effects().values().eq(&[1; 5]), "{cut:?}: {:?}", rig.effects());
    }
}

/// Each call once: its process is killed when the effect has happened and the tool has not returned.
#[test]
fn a_call_that_was_killed_is_unknown_and_does_not_happen_again() {
    for deadly in CALLS {
        let store = Arc::new(MemoryStore::new());
        let world = Arc::new(Happened { deadly: Some(deadly), ..Happened::default() });
        let rig = Rig { store: Arc::clone(&store), world: Arc::clone(&world) };
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");

        let (killed, journal) = (runtime(), Journal::default());
        let mut process = rig.process(&journal, Cut::Never);
        let mut doomed = Box::pin(async move { drive(&mut process, first()).await });
        killed.block_on(async {
            tokio::select! {
                _ = &mut doomed => panic!("it is killed"),
                () = world.died.notified() => {}
            }
        });
        // Nothing of it is heard again: its timers do not run, and its destructors neither.
        std::mem::forget((killed, doomed));

        runtime().block_on(async {
            let ended = drive(&mut rig.process(&journal, Cut::Never), first()).await.expect("it ends");
            assert_eq!(ended.text(), "All is written.");
            let outcome = |id: &str| if id == deadly { Outcome::OutcomeUnknown } else { Outcome::Ok };
            let expected: Vec<_> = CALLS.iter().map(|id| ((*id).to_owned(), outcome(id))).collect();
            assert_eq!(rig.outcomes().await, expected);
            assert!(rig.effects().values().eq(&[1; 5]), "{:?}", rig.effects());
        });
    }
}

#[tokio::test]
async fn a_decision_that_does_not_fit_leaves_its_call_waiting() {
    let (rig, journal) = (Rig::new(), Journal::default());
    let mut process = rig.process(&journal, Cut::Never);
    let ada = Incoming::new().decide("d", ApprovalDecision::Approve, &Decider::new("ada"));
    let unknown = Incoming::new().decide("x", ApprovalDecision::Approve, &Decider::new("grace"));
    let unfit = ApprovalDecision::ApproveEdited(r#"{"line":7}"#.to_owned());
    let unfit = Incoming::new().decide("d", unfit, &Decider::new("grace"));
    process.brings = vec![ada, unknown, unfit, approved()];
    let ended = drive(&mut process, first()).await.expect("it ends");
    assert_eq!(ended.text(), "All is written.");
    let codes = |word: &str| journal.kept().iter().filter(|kept| kept.starts_with(&format!(r#"{{"code":"{word}""#))).count();
    assert_eq!((codes("refused"), codes("accepted"), codes("approval_required")), (2, 3, 4));
    assert_eq!(rig.outcomes().await, all(Outcome::Ok));
}

#[tokio::test]
async fn nobody_decides_in_time() {
    let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
    let rig = Rig { store: Arc::new(MemoryStore::with_clock(Arc::clone(&clock))), ..Rig::new() };
    let journal = Journal::default();
    let mut process = rig.process(&journal, Cut::Never);
    process.brings.clear();
    let waiting = drive(&mut process, first()).await.expect("it waits");
    assert_eq!((waiting.code(), waiting.is_end()), ("approval_required", false));
    assert!(waiting.expires_in().is_some_and(|left| left > Duration::from_secs(60)), "{:?}", waiting.expires_in());
    let expired = Unit::accept(waiting.conversation().clone(), waiting.expired());
    let ended = drive(&mut rig.process(&Journal::default(), Cut::Never), expired).await.expect("it ends");
    assert_eq!(ended.text(), "All is written.");
    assert!(rig.outcomes().await.contains(&("d".to_owned(), Outcome::ApprovalExpired)));
    assert_eq!(rig.effects().get("d"), None);
}

#[tokio::test]
async fn what_may_pass_is_said_to() {
    let cases = [
        (ModelErrorKind::Connect, Some("model_unreachable")),
        (ModelErrorKind::Status(503), Some("model_refused")),
        (ModelErrorKind::Status(429), Some("model_overloaded")),
        (ModelErrorKind::Status(401), None),
        (ModelErrorKind::Encode, None),
    ];
    for (kind, retryable) in cases {
        let (rig, journal) = (Rig::new(), Journal::default());
        let mut process = rig.process(&journal, Cut::Never);
        process.agent = Agent::new(Staged { fails: Mutex::new(Some(kind)) });
        match (drive(&mut process, first()).await, retryable) {
            (Err(End::Unit(error)), Some(code)) => {
                assert_eq!((error.code(), error.is_retryable()), (code, true));
                assert!(!format!("{error} {error:?}").contains("as the test says"), "details are for operators");
                process.at = 0;
                assert_eq!(drive(&mut process, first()).await.expect("it ends").text(), "All is written.");
            }
            (Ok(ended), None) => assert!(ended.is_end() && ended.text().is_empty(), "{}", ended.code()),
            (other, _) => panic!("{kind:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_document_of_somebody_else_is_refused() {
    let (rig, journal) = (Rig::new(), Journal::default());
    let mut process = rig.process(&journal, Cut::Never);
    process.brings.clear();
    let waiting = drive(&mut process, first()).await.expect("it waits");
    let unit = Unit::step(waiting.conversation().clone());
    let error = unit.perform(&process.agent, &process.runner, RunOptions::new().principal("eve")).await;
    let error = error.expect_err("not hers");
    assert_eq!((error.code(), error.is_retryable()), ("other_principal", false));
    assert!(!format!("{error:?}").contains("Write."));
    let unavailable = UnitError::from(StoreError::Unavailable("the disk is gone".into()));
    assert_eq!((unavailable.code(), unavailable.is_retryable()), ("store_unavailable", true));
    assert!(!UnitError::from(StoreError::Corrupt("CANARY".into())).is_retryable());
}
