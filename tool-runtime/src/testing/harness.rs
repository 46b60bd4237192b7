//! [`Harness`]: a catalog with a complete runner, for tests.

#![allow(clippy::panic, reason = "a test stops at its first surprise")]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use crate::call::{CallId, Decider, ToolCall, ToolExecResult, ToolInvocationRecord};
use crate::capability::{
    Bind, Bindable, Capabilities, ConnectionBroker, ConnectionError, ConnectionHandle, ConnectionId, ConnectionKind,
    ConnectionRequest,
};
use crate::catalog::ToolCatalog;
use crate::policy::ToolPolicy;
use crate::runner::{ApprovalDecision, Run, RunOptions, ToolRunner};
use crate::store::{MemoryStore, RecordFilter, Store};
use crate::testing::ManualClock;
use crate::testing::capability_calls::CapabilityCalls;
use crate::testing::fault::{Fault, Faults};
use crate::testing::test_call::TestCall;

/// Returns a harness for the tools of a catalog. By default the policy allows every tool and graph, people can approve
/// calls, records are kept in memory, and the clock shows the beginning of 2026.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolError, capability, testing, tool};
///
/// /// Reads the time.
/// #[capability(effect = read_only)]
/// trait Clock { fn now(&self) -> i64; }
///
/// /// Seconds until a moment.
/// #[tool(name = "core__until", effect = read_only, redact = ["$"])]
/// fn until(
///     clock: &dyn Clock,
///     /// The moment, in seconds since 1970.
///     #[schemars(range(min = 0))]
///     moment: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(moment - clock.now())
/// }
///
/// struct Noon;
/// impl Clock for Noon { fn now(&self) -> i64 { 43_200 } }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let harness = testing::harness(ToolCatalog::builder().tool::<until>().build()?)
///     .with::<dyn Clock>(Arc::new(Noon))
///     .options(RunOptions::new().tenant("acme").principal("ada").role("buyer"));
///
/// let call = harness.call("core__until", json!({ "moment": 43_260 })).await;
/// call.assert_value(json!(60));
/// # #[cfg(feature = "testing")]
/// call.assert_capability_calls(["Clock::now"]);
/// harness.call("core__until", json!({ "moment": -1 })).await.assert_violation("/moment");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn harness(catalog: ToolCatalog) -> Harness {
    let policy = ToolPolicy::allow_all(catalog.specs().map(|spec| spec.name.as_str()));
    let start = Timestamp::from_second(START).unwrap_or(Timestamp::UNIX_EPOCH);
    Harness {
        parts: Mutex::new(Some(Parts {
            catalog,
            policy,
            capabilities: Capabilities::new(),
            connections: Vec::new(),
            options: RunOptions::new(),
        })),
        faults: Faults::default(),
        capability_calls: CapabilityCalls::default(),
        clock: Arc::new(ManualClock::at(start)),
        gate: OnceLock::new(),
        calls: AtomicU64::new(0),
    }
}

/// 2026-01-01T00:00:00Z, in seconds since 1970.
const START: i64 = 1_767_225_600;

/// A runner for the tools of a catalog, with a run, a store and a clock, for tests. [`harness`] makes one, and has an
/// example.
///
/// The first call builds the runner. Use the methods that take `self`, which change settings, before it.
///
/// # Panics
///
/// Panics with all problems if the runner cannot be built, and if a setting is changed after the first call.
pub struct Harness {
    /// The settings; `None` once the runner is built.
    parts: Mutex<Option<Parts>>,
    faults: Faults,
    capability_calls: CapabilityCalls,
    clock: Arc<ManualClock>,
    gate: OnceLock<Gate>,
    /// The number of calls so far, from which the next call's id is made.
    calls: AtomicU64,
}

struct Parts {
    catalog: ToolCatalog,
    policy: ToolPolicy,
    capabilities: Capabilities,
    connections: Vec<Account>,
    options: RunOptions,
}

struct Gate {
    runner: ToolRunner,
    run: Run,
    store: Arc<MemoryStore>,
}

impl Harness {
    /// Sets the policy.
    #[must_use]
    #[track_caller]
    pub fn policy(self, policy: ToolPolicy) -> Self {
        self.set(|parts| parts.policy = policy)
    }

    /// Sets tenant, principal, roles and the other options of the run.
    #[must_use]
    #[track_caller]
    pub fn options(self, options: RunOptions) -> Self {
        self.set(|parts| parts.options = options)
    }

    /// Binds adapters. A later binding of the same trait replaces the earlier one.
    #[must_use]
    #[track_caller]
    pub fn capabilities(self, capabilities: Capabilities) -> Self {
        self.set(|parts| parts.capabilities = std::mem::take(&mut parts.capabilities).merge(capabilities))
    }

    /// Binds one adapter, as [`Capabilities::with`] does.
    #[must_use]
    #[track_caller]
    pub fn with<T>(self, adapter: Arc<T>) -> Self
    where
        T: Bindable + ?Sized,
        <T as Bindable>::Borrowing: Bind<T>,
    {
        self.capabilities(Capabilities::new().with::<T>(adapter))
    }

    /// Connects the run to an account. Every tool that borrows `&Connection<C>` gets this adapter.
    #[must_use]
    #[track_caller]
    pub fn connection<C: ConnectionKind + ?Sized>(self, adapter: Arc<C>) -> Self {
        let open = move |request: &ConnectionRequest<'_>| {
            request.wants::<C>().then(|| ConnectionHandle::new::<C>(Arc::clone(&adapter)))
        };
        self.set(|parts| parts.connections.push(Account { kind: C::KIND, open: Box::new(open) }))
    }

    /// Injects a fault into a tool, from its first call on. If the catalog has no such tool, the first call panics.
    #[must_use]
    pub fn fault(self, tool: &str, fault: Fault) -> Self {
        self.faults.set(tool, Some(fault));
        self
    }

    /// Injects a fault into a tool between two calls; see [`fault`](Self::fault).
    ///
    /// # Panics
    /// There is no such tool.
    #[track_caller]
    pub fn break_tool(&self, tool: &str, fault: Fault) {
        assert!(self.run().catalog().get(tool).is_some(), "no tool of the run is called `{tool}`");
        self.faults.set(tool, Some(fault));
    }

    /// Removes the fault of a tool.
    pub fn heal(&self, tool: &str) {
        self.faults.set(tool, None);
    }

    /// Adds the arguments to recorded capability calls, in their `Debug` form; `_` stands for a type without `Debug`.
    /// Arguments can hold personal data, and a failed assertion prints them.
    ///
    /// ```
    /// use serde_json::json;
    /// use tool_runtime::{Capabilities, ToolCatalog, ToolError, capability, testing, tool};
    ///
    /// /// Counts parts.
    /// #[capability(effect = read_only)]
    /// trait Stock {
    ///     /// How many parts there are.
    ///     fn count(&self, part: &str) -> u32;
    /// }
    /// # struct Shelf;
    /// # impl Stock for Shelf {
    /// #     fn count(&self, _: &str) -> u32 { 7 }
    /// # }
    /// # /// Counts a part.
    /// # #[tool(name = "stock__count", effect = read_only, redact = ["$"])]
    /// # fn count(
    /// #     stock: &dyn Stock,
    /// #     /// Which.
    /// #     part: String,
    /// # ) -> Result<u32, ToolError> { Ok(stock.count(&part)) }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let capabilities = Capabilities::new().with::<dyn Stock>(std::sync::Arc::new(Shelf));
    /// let harness = testing::harness(ToolCatalog::builder().tool::<count>().build()?).capabilities(capabilities);
    /// let call = harness.record_arguments().call("stock__count", json!({ "part": "P-10" })).await;
    /// assert_eq!(call.capability_calls(), [r#"Stock::count("P-10")"#]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn record_arguments(self) -> Self {
        self.capability_calls.record_arguments();
        self
    }

    /// Returns the method calls on capabilities and connections so far, in order. Each has the id of the tool call that
    /// made it and a text: `Clock::now`, or `Clock::now("Oslo")` with [`record_arguments`](Self::record_arguments).
    ///
    /// Methods are recorded with the feature `testing`, for every `#[capability]` trait whose methods are all in its
    /// own block. For a trait that builds on another capability, or that an unknown attribute changes, only the trait's
    /// name is recorded, once for each tool call that borrows it.
    #[must_use]
    pub fn capability_calls(&self) -> Vec<(CallId, String)> {
        self.capability_calls.all()
    }

    /// Returns the clock, which sets the times of records, expiries and leases.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Returns the run, for the methods that the harness lacks.
    #[must_use]
    #[track_caller]
    pub fn run(&self) -> &Run {
        &self.gate().run
    }

    /// Returns the runner, for example to make a run of another principal with the same store.
    #[must_use]
    #[track_caller]
    pub fn runner(&self) -> &ToolRunner {
        &self.gate().runner
    }

    /// Calls a tool with these arguments, as a model would.
    pub async fn call(&self, tool: &str, arguments: Value) -> TestCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.exec(ToolCall::text(format!("call_{number}"), tool, arguments.to_string())).await
    }

    /// Executes a call unchanged, for arguments that are not JSON or for a call id that the test chooses.
    pub async fn exec(&self, call: ToolCall) -> TestCall {
        let result = self.run().exec(call).await;
        self.ended(result).await
    }

    /// Sends a person's decision on a call that waits, and returns the call's end.
    ///
    /// # Panics
    /// The call does not wait, or the decider may not decide.
    pub async fn decide(&self, call: &TestCall, decision: ApprovalDecision, decider: &Decider) -> TestCall {
        let Some(question) = call.result.question() else { panic!("the call does not wait\n{call}") };
        match self.run().resume(question, decision, decider).await {
            Ok(result) => self.ended(result).await,
            Err(error) => {
                // In production, a decider of another tenant must not learn that the call waits.
                let waits = self.run().pending(question.call_id()).await.unwrap_or_default();
                let its = waits.as_ref().map(|call| call.tenant.as_deref());
                let of =
                    |tenant: Option<&str>| tenant.map_or("no tenant".to_owned(), |id| format!("the tenant `{id}`"));
                let other = its.filter(|its| *its != decider.tenant_id());
                let other =
                    other.map(|its| format!("; the decider has {}, the run {}", of(decider.tenant_id()), of(its)));
                panic!("the decision was refused: {error}{}\n{call}", other.unwrap_or_default())
            }
        }
    }

    /// Returns the records of the run's calls so far, in the order in which they were closed.
    pub async fn records(&self) -> Vec<ToolInvocationRecord> {
        let gate = self.gate();
        gate.store.calls(&RecordFilter::run(gate.run.id())).await.unwrap_or_default()
    }

    async fn ended(&self, result: ToolExecResult) -> TestCall {
        let gate = self.gate();
        let filter = RecordFilter::call(gate.run.id(), result.call_id().clone());
        let closed = gate.store.calls(&filter).await.unwrap_or_default().pop();
        let record = match closed {
            Some(record) => Some(record),
            None => gate.store.open_records(&filter).await.unwrap_or_default().pop(),
        };
        let capability_calls = self.capability_calls.of(result.call_id());
        TestCall { result, record, capability_calls }
    }

    #[track_caller]
    fn set(self, change: impl FnOnce(&mut Parts)) -> Self {
        match &mut *self.parts.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(parts) => change(parts),
            None => panic!("the gate is built already: set this before the first call"),
        }
        self
    }

    #[track_caller]
    fn gate(&self) -> &Gate {
        self.gate.get_or_init(|| {
            let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
            match parts {
                Some(parts) => build(parts, &self.faults, &self.capability_calls, &self.clock),
                None => panic!("the gate could not be built, see the first failure"),
            }
        })
    }
}

fn build(mut parts: Parts, faults: &Faults, calls: &CapabilityCalls, clock: &Arc<ManualClock>) -> Gate {
    for tool in faults.tools() {
        assert!(parts.catalog.get(&tool).is_some(), "`{tool}` has a fault and is not in the catalog");
    }
    parts.catalog.wrap(|tool, behaviour| faults.around(tool, behaviour, calls));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(clock)));
    let mut options = parts.options;
    for account in &parts.connections {
        options = options.connection(account.kind, ConnectionId::new(account.kind));
    }
    let built = ToolRunner::builder(parts.catalog, parts.policy)
        .capabilities(parts.capabilities)
        .broker(Accounts(parts.connections))
        .approvals(true)
        .store(Arc::clone(&store))
        .clock(Arc::clone(clock))
        .build();
    match built {
        Ok(runner) => Gate { run: runner.run(options), runner, store },
        Err(problems) => panic!("the runner cannot be built: {problems}"),
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// The adapter for all connections of one trait.
struct Account {
    kind: &'static str,
    open: Box<Open>,
}

type Open = dyn Fn(&ConnectionRequest<'_>) -> Option<ConnectionHandle> + Send + Sync;

struct Accounts(Vec<Account>);

#[async_trait]
impl ConnectionBroker for Accounts {
    async fn resolve(&self, request: ConnectionRequest<'_>) -> Result<ConnectionHandle, ConnectionError> {
        self.0.iter().find_map(|account| (account.open)(&request)).ok_or(ConnectionError::Unknown)
    }
}
