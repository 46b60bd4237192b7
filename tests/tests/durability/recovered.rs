//! A call whose process died is reconciled or repeated by the process that continues its run, in each way to continue
//! one.

mod acted;
mod approved;
mod changed;
mod connected;
mod damaged;
mod doors;
mod inside;
mod reconciling;
mod swept;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tool_runtime::agent::{
    Agent, Conversation, DisplayFn, Input, ModelClient, ModelError, ModelRequest, RunQueue, Step, Worker,
};
use tool_runtime::runner::RunnerBuilder;
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
use tool_runtime::testing::ManualClock;
use tool_runtime::wire::history::{CallMessage, Part};
use tool_runtime::wire::{Decoded, FinishReason, Message};
use tool_runtime::{
    Call, Cap, Capabilities, Outcome, Reconciled, RunOptions, ToolCatalog, ToolComponent, ToolContext, ToolError,
    ToolPolicy, ToolRunner, capability, tool,
};

/// The outcome of a call, its cause, and its result.
type End = (Outcome, Option<&'static str>, Option<&'static str>);

/// How long a call and a run count as alive without a sign of life.
const LEASE: Duration = Duration::from_secs(30);

/// A system outside, which knows the keys of calls.
#[capability(effect = state_change)]
pub(crate) trait Outside {
    /// The effect of a key happens, unless the key is refused. Returns how often it was asked for.
    fn happen(&self, key: &str) -> Option<u32>;
    /// When the process of this call dies. Asked once.
    fn fate(&self) -> Option<Dies>;
    /// The process of the call dies now.
    fn die(&self);
    /// Whether the effect of a key has happened.
    fn has(&self, key: &str) -> bool;
    /// Refuses a key from now on.
    fn refuse(&self, key: &str);
    /// The behaviour of `reconcile`.
    fn looks(&self) -> Looks;
}

/// When a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dies {
    /// Before the effect.
    Before,
    /// After the effect, before its end is written.
    After,
}

/// The behaviours of `reconcile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// It finds out.
    Normally,
    /// It never ends.
    Hangs,
    /// It panics.
    Panics,
    /// Its process dies.
    Dies,
    /// It answers for the effect of another key.
    Another,
    /// It finds out after a while. A test that waits for the death of a process learns when it begins.
    Slowly,
}

struct There {
    /// How many more calls have this fate after the next one.
    more: Mutex<u32>,
    effects: Mutex<BTreeMap<String, u32>>,
    refused: Mutex<BTreeSet<String>>,
    fate: Mutex<Option<Dies>>,
    looks: Mutex<Looks>,
    looked: Mutex<Vec<String>>,
    died: Notify,
}

fn of<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outside for There {
    fn happen(&self, key: &str) -> Option<u32> {
        if of(&self.refused).contains(key) {
            return None;
        }
        let mut effects = of(&self.effects);
        let times = effects.entry(key.to_owned()).or_default();
        *times += 1;
        Some(*times)
    }

    fn fate(&self) -> Option<Dies> {
        let mut more = of(&self.more);
        if *more > 0 {
            *more -= 1;
            return *of(&self.fate);
        }
        of(&self.fate).take()
    }

    fn die(&self) {
        // The last one takes the process with it.
        if of(&self.fate).is_none() {
            self.died.notify_one();
        }
    }

    fn has(&self, key: &str) -> bool {
        of(&self.looked).push(key.to_owned());
        of(&self.effects).contains_key(key)
    }

    fn refuse(&self, key: &str) {
        of(&self.refused).insert(key.to_owned());
    }

    fn looks(&self) -> Looks {
        *of(&self.looks)
    }
}

async fn act(outside: &dyn Outside, key: &str) -> Result<String, ToolError> {
    let fate = outside.fate();
    if fate == Some(Dies::Before) {
        outside.die();
        std::future::pending::<()>().await;
    }
    outside.happen(key).ok_or_else(|| ToolError::code("refused"))?;
    if fate == Some(Dies::After) {
        outside.die();
        std::future::pending::<()>().await;
    }
    Ok("done".to_owned())
}

/// Finds out whether the effect of a key has happened, and prevents it otherwise.
fn found(outside: &dyn Outside, key: &str, what: &str) -> Reconciled<String> {
    if outside.has(key) {
        return Reconciled::TookEffect(format!("found {what}"));
    }
    outside.refuse(key);
    Reconciled::Prevented
}

/// Pays, and can find out whether it did.
#[tool(name = "recovered__keyed", effect = state_change, redact = ["$"])]
struct Keyed {
    /// The purpose of the payment.
    what: String,
}

impl ToolComponent for Keyed {
    type Capabilities = (Cap<dyn Outside>,);
    type Output = String;

    async fn run(self, (outside,): Self::Capabilities, call: &Call<Self>) -> Result<String, ToolError> {
        act(&*outside, &call.idempotency_key()).await
    }

    async fn reconcile(
        self,
        (outside,): Self::Capabilities,
        call: &Call<Self>,
    ) -> Result<Reconciled<String>, ToolError> {
        let key = call.idempotency_key();
        match outside.looks() {
            Looks::Normally => {}
            Looks::Hangs => std::future::pending().await,
            Looks::Panics => panic!("CANARY"),
            Looks::Another => {
                outside.has(&key);
                return Ok(Reconciled::TookEffect("another effect".to_owned()));
            }
            Looks::Dies => {
                outside.die();
                std::future::pending::<()>().await;
            }
            Looks::Slowly => {
                outside.die();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        Ok(found(&*outside, &key, &self.what))
    }
}

/// Pays; the bank knows the key, and can say whether it paid.
#[tool(name = "recovered__both", effect = state_change, idempotent, redact = ["$"])]
struct Both {
    /// The purpose of the payment.
    what: String,
}

impl ToolComponent for Both {
    type Capabilities = (Cap<dyn Outside>,);
    type Output = String;

    async fn run(self, (outside,): Self::Capabilities, call: &Call<Self>) -> Result<String, ToolError> {
        act(&*outside, &call.idempotency_key()).await
    }

    async fn reconcile(
        self,
        (outside,): Self::Capabilities,
        call: &Call<Self>,
    ) -> Result<Reconciled<String>, ToolError> {
        Ok(found(&*outside, &call.idempotency_key(), &self.what))
    }
}

/// Sends; the receiver knows the key.
#[tool(name = "recovered__again", effect = state_change, idempotent, redact = ["$"])]
async fn again(
    ctx: &ToolContext,
    outside: &dyn Outside,
    /// What.
    what: String,
) -> Result<String, ToolError> {
    let _ = what;
    act(outside, &ctx.idempotency_key()).await
}

/// Has an effect that cannot be looked up.
#[tool(name = "recovered__plain", effect = state_change, redact = ["$"])]
async fn plain(
    ctx: &ToolContext,
    outside: &dyn Outside,
    /// What.
    what: String,
) -> Result<String, ToolError> {
    let _ = what;
    act(outside, &ctx.idempotency_key()).await
}

/// Sends what was shown before.
#[tool(name = "recovered__proven", effect = state_change, idempotent, redact = ["$"])]
async fn proven(
    ctx: &ToolContext,
    outside: &dyn Outside,
    /// What.
    #[arg(evidence = "recovered__plain")]
    what: String,
) -> Result<String, ToolError> {
    let _ = what;
    act(outside, &ctx.idempotency_key()).await
}

const TOOLS: [&str; 3] = ["keyed", "again", "plain"];

/// A model that makes one call, and answers.
struct Plan(&'static str);

#[async_trait]
impl ModelClient for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    async fn complete(&self, request: ModelRequest<'_>, _: &mut DisplayFn<'_>) -> Result<Decoded, ModelError> {
        let called = request.messages.iter().any(|message| matches!(message, Message::Assistant(_)));
        if called {
            return Ok(Decoded::new(&[Part::text("Done.")], FinishReason::Stop));
        }
        let call = CallMessage::new("c".to_owned(), format!("recovered__{}", self.0), ARGUMENTS);
        Ok(Decoded::new(&[Part::Call(call)], FinishReason::ToolCalls))
    }
}

const ARGUMENTS: &str = r#"{"what":"rent"}"#;

/// The parts that outlive the processes.
struct Rig {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    there: Arc<There>,
    tool: &'static str,
    asks: bool,
    /// The difference between the first process and the later ones.
    newer: changed::Newer,
    is_later: AtomicBool,
}

impl Rig {
    /// The store, for the methods of `dyn Store`.
    fn dyn_store(&self) -> &dyn Store {
        &*self.store
    }

    /// The process of the first call of this tool dies.
    fn new(tool: &'static str, dies: Dies) -> Self {
        let clock = Arc::new(ManualClock::at("2026-01-01T00:00:00Z".parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        let there = There {
            more: Mutex::default(),
            effects: Mutex::default(),
            refused: Mutex::default(),
            fate: Mutex::new(Some(dies)),
            looks: Mutex::new(Looks::Normally),
            looked: Mutex::default(),
            died: Notify::new(),
        };
        Self {
            clock,
            store,
            there: Arc::new(there),
            tool,
            asks: false,
            newer: changed::Newer::Same,
            is_later: AtomicBool::new(false),
        }
    }

    fn runner(&self) -> ToolRunner {
        self.runner_by(Arc::clone(&self.clock))
    }

    /// The runner of a process with this clock.
    fn runner_by(&self, clock: Arc<ManualClock>) -> ToolRunner {
        self.runner_of(clock, Arc::clone(&self.store) as Arc<dyn Store>)
    }

    /// The runner of a process over this store.
    fn runner_over(&self, store: Arc<dyn Store>) -> ToolRunner {
        self.runner_of(Arc::clone(&self.clock), store)
    }

    fn runner_of(&self, clock: Arc<ManualClock>, store: Arc<dyn Store>) -> ToolRunner {
        self.builder().clock(clock).store(store).build().unwrap_or_else(|error| panic!("{error}"))
    }

    fn builder(&self) -> RunnerBuilder {
        let asked = if self.asks { format!("'recovered__{}'", self.tool) } else { String::new() };
        let policy = format!(
            "allowed_tools = ['recovered__keyed', 'recovered__again', 'recovered__plain', 'recovered__proven', \
             'recovered__both']\n\
             require_approval_for_tools = [{asked}]"
        );
        let is_later = self.is_later.load(Ordering::Relaxed);
        self.builder_of(ToolPolicy::from_toml(&self.newer.policy(is_later, &policy)).expect("a policy"))
    }

    fn builder_of(&self, policy: ToolPolicy) -> RunnerBuilder {
        let catalog = self.newer.catalog(self.is_later.load(Ordering::Relaxed), &self.there);
        ToolRunner::builder(catalog, policy)
            .capabilities(Capabilities::new().with(Arc::clone(&self.there) as Arc<dyn Outside>))
            .approvals(true)
            .lease(LEASE)
            .clock(Arc::clone(&self.clock))
            .store(Arc::clone(&self.store))
    }

    fn agent(&self) -> Agent {
        Agent::new(Plan(self.tool))
    }

    fn name(&self) -> String {
        format!("recovered__{}", self.tool)
    }

    fn worker(&self) -> Worker {
        Worker::new(self.agent(), self.runner()).lease(LEASE)
    }

    fn queue(&self) -> RunQueue {
        tests::queue(Arc::clone(&self.store))
    }

    /// A process that works until a call of it dies; nothing of it is heard again.
    fn dies(&self, work: impl Future<Output = ()> + 'static) {
        let runtime = runtime();
        let mut doomed = Box::pin(work);
        runtime.block_on(async {
            tokio::select! {
                () = &mut doomed => panic!("it ends"),
                () = self.there.died.notified() => {}
            }
        });
        // Neither its timers nor its destructors run.
        std::mem::forget((runtime, doomed));
    }

    /// Another process, once the leases of the first one are over.
    fn later<T>(&self, work: impl Future<Output = T>) -> T {
        self.clock.advance(LEASE);
        self.is_later.store(true, Ordering::Relaxed);
        let hangs = *of(&self.there.looks) == Looks::Hangs;
        let paused = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = if hangs { paused().expect("a runtime") } else { runtime() };
        runtime.block_on(work)
    }

    /// A conversation whose model has made its call, which has not begun.
    async fn asked(&self) -> Conversation {
        let mut conversation = self.agent().converse(self.runner().run(ada()));
        conversation.accept(Input::from("Pay.")).await.expect("a message");
        assert!(matches!(conversation.step().await, Step::Asked));
        conversation
    }

    /// Works with one worker until the run has answered.
    async fn worked(&self) {
        self.works_until("answered").await;
    }

    async fn works_until(&self, state: &str) {
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let worker = tokio::spawn(self.worker().run(async move { drop(stopped.wait_for(|stop| *stop).await) }));
        while self.state().await != state {
            assert!(!worker.is_finished(), "the worker ended");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        stop.send_replace(true);
        worker.await.expect("no panic").expect("the store is there");
    }

    async fn state(&self) -> String {
        self.queue().find("run", Some("acme")).await.expect("it is there").0.state.to_string()
    }

    /// How the one call ended, by its one record.
    fn ended(&self) -> (Outcome, Option<&'static str>, Option<String>) {
        runtime().block_on(async {
            let sealed = self.store.records(&RecordFilter::default()).await.expect("records");
            assert_eq!(Chain::verify(&sealed), Ok(()));
            let records = self.store.calls(&RecordFilter::default()).await.expect("records");
            assert_eq!(records.len(), 1, "one record: {records:?}");
            let record = records.into_iter().next().expect("one");
            assert!(record.ended_at.is_some());
            (record.outcome, record.cause(), record.result.map(|value| value.get().to_owned()))
        })
    }

    /// Returns the number of attempts at the effect of each key.
    fn effects(&self) -> Vec<u32> {
        of(&self.there.effects).values().copied().collect()
    }

    /// Checks how a call ended whose process died, and that the effect has one key.
    #[track_caller]
    fn holds(&self, door: &str, dies: Dies) {
        let (outcome, cause, result) = self.ended();
        let what = format!("{door}: {} died {dies:?}", self.tool);
        let (expected, times) = self.expected(dies);
        let result = result.as_deref();
        assert_eq!((outcome, cause, result), expected, "{what}");
        assert_eq!(self.effects(), Vec::from_iter(times), "{what}: one key, asked for so often");
        let looked = of(&self.there.looked).clone();
        let keys: Vec<_> = of(&self.there.effects).keys().cloned().collect();
        assert!(looked.iter().all(|key| keys.is_empty() || keys.contains(key)), "{what}: it looks for its own key");
    }

    /// Returns the end of a call whose process died, and the number of requests for its effect.
    fn expected(&self, dies: Dies) -> (End, Option<u32>) {
        match (self.tool, dies) {
            ("keyed", Dies::After) => ((Outcome::Ok, None, Some(r#""found rent""#)), Some(1)),
            ("keyed", Dies::Before) => ((Outcome::Cancelled, Some("prevented"), None), None),
            ("again", Dies::After) => ((Outcome::Ok, None, Some(r#""done""#)), Some(2)),
            ("again", Dies::Before) => ((Outcome::Ok, None, Some(r#""done""#)), Some(1)),
            (_, Dies::After) => ((Outcome::OutcomeUnknown, Some("lost"), None), Some(1)),
            (_, Dies::Before) => ((Outcome::OutcomeUnknown, Some("lost"), None), None),
        }
    }
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run").principal("ada").tenant("acme")
}

fn grace() -> tool_runtime::call::Decider {
    tool_runtime::call::Decider::new("grace").tenant("acme")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn every(check: impl Fn(Rig, Dies)) {
    for tool in TOOLS {
        for dies in [Dies::Before, Dies::After] {
            check(Rig::new(tool, dies), dies);
        }
    }
}
