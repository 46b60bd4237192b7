//! Calls that are cut short: the caller goes away, or the store fails before or after it has written, at every point of
//! every way of finishing a call. Each call keeps one record, and a waiting call can still be decided.

mod anything;
mod dropped;
mod failed;
mod forgotten;
mod races;
mod strangers;

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tests::world::{HookAction, HookedStore, Processes, World};
use tool_runtime::call::CallId;
use tool_runtime::store::{DocumentKind, Key, MemoryStore, Query, RecordFilter, Store};
use tool_runtime::{
    Call, Event, Outcome, Run, RunOptions, ToolCall, ToolComponent, ToolError, ToolInvocationRecord, ToolRunner, tool,
};

/// Has an effect.
#[tool(name = "cut__change", effect = state_change, redact = ["$"])]
async fn change(
    world: &dyn World,
    /// What to change it to.
    to: u32,
) -> Result<u32, ToolError> {
    tokio::task::yield_now().await;
    world.happen();
    tokio::task::yield_now().await;
    Ok(to)
}

/// Never ends.
#[tool(name = "cut__stuck", effect = state_change, redact = ["$"])]
async fn stuck(
    /// Which.
    number: u32,
) -> Result<u32, ToolError> {
    let () = std::future::pending().await;
    Ok(number)
}

/// Has another effect.
#[tool(name = "cut__other", effect = state_change, redact = ["$"])]
fn other(world: &dyn World) -> Result<String, ToolError> {
    world.happen();
    Ok("other".to_owned())
}

/// What a client does.
#[tool(name = "cut__client", effect = state_change, execution = client, client_result = String, prepare = ["$"],
    redact = ["$"])]
struct Client {}

impl ToolComponent for Client {
    type Capabilities = ();
    type Output = bool;

    async fn run(self, (): (), _: &Call<Self>) -> Result<bool, ToolError> {
        tokio::task::yield_now().await;
        Ok(true)
    }
}

const OPEN: &str = "allowed_tools = ['cut__change', 'cut__stuck', 'cut__other', 'cut__client']";
const ASKS: &str = "allowed_tools = ['cut__change', 'cut__other', 'cut__client']\nrequire_approval_for_tools = ['cut__change', 'cut__client']";

/// Processes over one store, in one world, and the events of those with a hook.
struct Rig {
    shared: Processes,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Deref for Rig {
    type Target = Processes;

    fn deref(&self) -> &Processes {
        &self.shared
    }
}

impl Rig {
    fn new() -> Self {
        Self { shared: Processes::at("2026-01-01T00:00:00Z", 0), events: Arc::default() }
    }

    fn process(&self, store: Arc<dyn Store>, policy: &str) -> ToolRunner {
        self.start(store, policy, self.capabilities())
    }

    /// A run in a separate process.
    fn run(&self, policy: &str) -> Run {
        self.process(Arc::clone(&self.store) as _, policy).run(ada())
    }

    /// A run whose store has a hook, and whose events are kept.
    fn hooked(&self, policy: &str, hook: impl Fn(&'static str) -> HookAction + Send + Sync + 'static) -> Run {
        let events = Arc::clone(&self.events);
        let options = ada().events(move |event: Event| events.lock().unwrap().push(event));
        self.process(Arc::new(HookedStore::new(Arc::clone(&self.store) as _, hook)), policy).run(options)
    }

    /// How many calls are booked on the principal's account. `None` if there is no account.
    async fn booked(&self) -> Option<u64> {
        let accounts = self.store.list(&Query::new(DocumentKind::Account)).await.expect("accounts");
        let account = tests::stored::json_of(accounts.first()?);
        Some(account["account"]["booked"]["calls"].as_u64().unwrap_or(0))
    }

    /// The closed records of a call.
    async fn closed(&self, id: &str) -> Vec<ToolInvocationRecord> {
        self.shared.closed().await;
        self.store.calls(&RecordFilter::call("run-1", CallId::new(id))).await.expect("records")
    }

    async fn waits(&self, id: &str) -> bool {
        self.store
            .pending(&Key::waiting("run-1", None, Some("ada"), &CallId::new(id)))
            .await
            .expect("a store")
            .is_some()
    }

    /// The number of events that reported the end of a call.
    fn ends(&self) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| matches!(event, Event::ToolCallResult { .. })).count()
    }

    /// Checks the properties that a call has however it was cut short.
    async fn check(&self, id: &str, what: &str) {
        let (closed, waits) = (self.closed(id).await, self.waits(id).await);
        let outcomes: Vec<_> = closed.iter().map(|record| record.outcome).collect();
        assert!(outcomes.len() + usize::from(waits) < 2, "{what}: one record or none: {outcomes:?}, waits {waits}");
        if self.effects() > 0 {
            let told = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Ok | Outcome::OutcomeUnknown));
            assert!(told && !waits, "{what}: it took effect: {outcomes:?}, waits {waits}");
        }
    }
}

fn ada() -> RunOptions {
    RunOptions::new().run_id("run-1").principal("ada")
}

fn change_call(id: &str) -> ToolCall {
    ToolCall::text(id, "cut__change", r#"{"to":7}"#)
}

fn client_call(id: &str) -> ToolCall {
    ToolCall::text(id, "cut__client", "{}")
}

/// Polls a future this many times, and drops it. Returns whether it ended.
pub(crate) async fn polled(times: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..times {
        let ready = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await;
        if ready {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Waits until everything that was handed to the store has arrived.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn late(_: &'static str) -> HookAction {
    HookAction::Late
}
