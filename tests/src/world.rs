//! The fixtures that most tests share: an outside world with its effects, several processes over one store, tools of
//! each kind, a sink that keeps events, and stores with hooks.

#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod bank;
mod effects;
mod event_log;
mod failing;
mod hooked;
mod tools;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
use tool_runtime::testing::ManualClock;
use tool_runtime::{
    Capabilities, ToolCatalog, ToolExecResult, ToolInvocationRecord, ToolPolicy, ToolRunner, capability,
};

pub use bank::{Bank, BankAnswer, Statement, owned, reconciled};
pub use effects::Effects;
pub use event_log::EventLog;
pub use failing::Fault;
pub use hooked::{HookAction, HookedStore};
pub use tools::{Cursor, tools};

/// The lease of a call.
pub const LEASE: Duration = Duration::from_secs(30);
/// The time after which a call at a closed door panics. It is far longer than any test needs to open the door.
const PATIENCE: Duration = Duration::from_hours(1);

/// The world outside.
#[capability(effect = state_change)]
pub trait World {
    /// Counts an effect, and returns the number of effects.
    fn happen(&self) -> u32;
    /// The door through which a slow effect ends.
    fn door(&self) -> Door;
}

/// A door at which slow calls wait for a permit to end. The wait has a limit, so that a call that should not run at all
/// fails its test.
#[derive(Debug, Clone)]
pub struct Door {
    permits: Arc<Semaphore>,
    patience: Duration,
}

impl Door {
    /// Waits until the door opens.
    ///
    /// # Panics
    /// It stayed shut.
    pub async fn pass(&self) {
        let passed = tokio::time::timeout(self.patience, self.permits.acquire()).await;
        assert!(passed.is_ok(), "the door stayed shut: the call should not run, or not for this long");
    }
}

/// The number of effects in the world, and its door.
#[derive(Debug)]
pub struct Happened {
    effects: AtomicU32,
    permits: Arc<Semaphore>,
    patience: Mutex<Duration>,
}

impl Happened {
    /// Creates a world without effects, with a door that this many calls can pass at once.
    #[must_use]
    pub fn new(open: usize) -> Self {
        let permits = Arc::new(Semaphore::new(open));
        Self { effects: AtomicU32::new(0), permits, patience: Mutex::new(PATIENCE) }
    }

    /// The number of effects so far.
    #[must_use]
    pub fn effects(&self) -> u32 {
        self.effects.load(Ordering::Acquire)
    }
}

impl World for Happened {
    fn happen(&self) -> u32 {
        self.effects.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn door(&self) -> Door {
        let patience = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        Door { permits: Arc::clone(&self.permits), patience }
    }
}

/// Several processes over one store, in one world. The tools are those of the test.
#[derive(Debug)]
pub struct Processes {
    /// The clock of the store and of all processes.
    pub clock: Arc<ManualClock>,
    /// The store.
    pub store: Arc<MemoryStore>,
    /// The world.
    pub world: Arc<Happened>,
}

impl Processes {
    /// Creates a world at a time, with a door that this many calls can pass at once.
    ///
    /// # Panics
    /// The text is not a time.
    #[must_use]
    pub fn at(time: &str, open: usize) -> Self {
        let clock = Arc::new(ManualClock::at(time.parse().expect("a time")));
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
        Self { clock, store, world: Arc::new(Happened::new(open)) }
    }

    /// The world, for tools.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::new().with(Arc::clone(&self.world) as Arc<dyn World>)
    }

    /// Starts a process, which shares only the store and the world with the others.
    ///
    /// # Panics
    /// The policy does not fit the tools of the test.
    #[must_use]
    pub fn start(&self, store: Arc<dyn Store>, policy: &str, capabilities: Capabilities) -> ToolRunner {
        self.start_with(ToolCatalog::collect().expect("a catalog"), store, policy, capabilities)
    }

    /// Starts a process with the tools of this catalog.
    ///
    /// # Panics
    /// The policy does not fit the catalog.
    #[must_use]
    pub fn start_with(
        &self,
        catalog: ToolCatalog,
        store: Arc<dyn Store>,
        policy: &str,
        capabilities: Capabilities,
    ) -> ToolRunner {
        let policy = ToolPolicy::from_toml(policy).unwrap_or_else(|error| panic!("{error}"));
        ToolRunner::builder(catalog, policy)
            .capabilities(capabilities)
            .approvals(true)
            .lease(LEASE)
            .clock(Arc::clone(&self.clock))
            .store(store)
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Lets this many more calls pass the door.
    pub fn open(&self, calls: usize) {
        self.world.permits.add_permits(calls);
    }

    /// Sets how long a call waits at the door.
    pub fn wait_for(&self, patience: Duration) {
        *self.world.patience.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    /// The number of effects so far.
    #[must_use]
    pub fn effects(&self) -> u32 {
        self.world.effects()
    }

    /// Polls a call until its effect has happened, and leaves it there.
    ///
    /// # Panics
    /// The call ended without an effect.
    pub async fn stuck(&self, call: impl Future<Output = ToolExecResult> + Send + 'static) -> JoinHandle<()> {
        let before = self.effects();
        let task = tokio::spawn(async move { drop(call.await) });
        while self.effects() == before {
            assert!(!task.is_finished(), "the call ended without an effect");
            tokio::task::yield_now().await;
        }
        task
    }

    /// The records of all calls, in whole chains.
    ///
    /// # Panics
    /// A chain is broken.
    pub async fn closed(&self) -> Vec<ToolInvocationRecord> {
        let records = self.store.records(&RecordFilter::default()).await.expect("records");
        assert_eq!(Chain::verify(&records), Ok(()));
        records.iter().filter_map(|sealed| sealed.record.as_call().cloned()).collect()
    }
}
