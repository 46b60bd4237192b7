//! [`RunnerBuilder`]: collects the parts of a runner, checks them and builds the runner. The file is long because of
//! the documentation of its methods.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::call::DigestKey;
use crate::capability::{Capabilities, ConnectionBroker, InjectedFrom, NameLookup, without_client};
use crate::catalog::{CompiledCatalog, Entry, ToolCatalog};
use crate::error::{BuildError, Problem};
use crate::hydrate::repair::{Repair, built_in};
use crate::policy::ToolPolicy;
use crate::runner::ToolRunner;
use crate::runner::error::BuildProblems;
use crate::runner::ledger::digests::Digests;
use crate::runner::report::contained::{Contained, ContainedValidator};
use crate::runner::report::failure::{Failure, Failures};
use crate::runner::run::views::Views;
use crate::runner::shared::{Lookups, Shared};
use crate::runner::waiting::approval_rules;
use crate::runner::waiting::names;
use crate::schema::validator::{JsonSchemaValidator, Validator};
use crate::store::{Clock, MemoryStore, Store, StoreClock, SystemClock, Timed};
use crate::tool::is_discovered;

/// Builds a [`ToolRunner`]. [`ToolRunner::builder`] creates one, with defaults for all parts except catalog and policy.
///
/// ```
/// use std::time::Duration;
/// use tool_runtime::store::MemoryStore;
/// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
///
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all())
///     .store(MemoryStore::new())
///     .approval_ttl(Duration::from_secs(3600))
///     .build()?;
///
/// // A policy that names an unknown tool is an error when the runner is built, not at the first call.
/// let misspelt = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::allow(["games__rol"])).build();
/// assert!(misspelt.is_err());
/// # drop(runner);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct RunnerBuilder {
    catalog: Arc<ToolCatalog>,
    policy: ToolPolicy,
    capabilities: Capabilities,
    broker: Option<Arc<dyn ConnectionBroker>>,
    approvals: Option<bool>,
    approval_ttl: Duration,
    lease: Duration,
    store: Arc<dyn Store>,
    /// Whether the store is the default one in memory.
    store_is_own: bool,
    digest_key: Option<DigestKey>,
    clock: Option<Arc<dyn Clock>>,
    validator: Arc<dyn Validator>,
    repairers: Vec<(String, Arc<Repair>)>,
    names: Lookups<Arc<dyn NameLookup>>,
    failures: Failures,
    span_values: bool,
}

impl RunnerBuilder {
    pub(super) fn new(catalog: Arc<ToolCatalog>, policy: ToolPolicy) -> Self {
        Self {
            catalog,
            policy,
            capabilities: without_client(),
            broker: None,
            approvals: None,
            approval_ttl: Duration::from_secs(24 * 60 * 60),
            lease: Duration::from_secs(30),
            store: Arc::new(MemoryStore::new()),
            store_is_own: true,
            digest_key: None,
            clock: None,
            validator: Arc::new(JsonSchemaValidator),
            repairers: Vec::new(),
            names: Lookups::new(),
            failures: Failures::default(),
            span_values: false,
        }
    }

    /// Binds adapters to capabilities. Repeated calls add to the earlier bindings; the last binding of a trait wins.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = self.capabilities.merge(capabilities);
        self
    }

    /// Sets the broker that resolves connections to users' accounts. Without one, [`build`](Self::build) fails if the
    /// policy mentions a tool that borrows a connection.
    pub fn broker(mut self, broker: impl ConnectionBroker + 'static) -> Self {
        self.broker = Some(Arc::new(broker));
        self
    }

    /// Sets whether people can approve calls. With `true`, tools that need an approval are visible and their calls
    /// wait. With `false`, such calls are denied, and tools whose every call needs an approval are invisible. Required
    /// if the policy can require an approval.
    ///
    /// The principal of a run may decide on its own calls only if the policy has `own_calls = true` in `[approvals]`.
    pub fn approvals(mut self, possible: bool) -> Self {
        self.approvals = Some(possible);
        self
    }

    /// Sets how long a call may wait for a person or a client before it expires; 24 hours by default.
    pub fn approval_ttl(mut self, ttl: Duration) -> Self {
        self.approval_ttl = ttl;
        self
    }

    /// Sets how long other processes treat a call with effects as running after its process last renewed the call's
    /// lease; 30 seconds by default, and at least one second. A running process renews the lease in time. After the
    /// lease has expired, any other process may take the call over: it lets the tool reconcile or repeat the call, or
    /// closes it as `outcome_unknown`. [`RunQueue::take`](crate::agent::RunQueue::take) and
    /// [`RunQueue::begin`](crate::agent::RunQueue::begin) lease runs for this time, too.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_secs(1));
        self
    }

    /// Sets the store, which keeps records and waiting calls; in memory by default.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        (self.store, self.store_is_own) = (Arc::new(store), false);
        self
    }

    /// Sets the key of the digests of arguments in records, such as those that could not be read. By default the key is
    /// created once and kept in the store. A reader of the whole store can then test guesses of sensitive arguments
    /// against their digests; a reader of the records alone cannot.
    ///
    /// Give every process of a store the same key. After a change of the key, new digests start with its id and do not
    /// match earlier ones. Records stay verifiable.
    pub fn digest_key(mut self, key: DigestKey) -> Self {
        self.digest_key = Some(key);
        self
    }

    /// Sets the clock for the times in records and for expiries, for tests and replays. The default is the system's
    /// clock. If [`store`](Self::store) sets a store, its time corrects the default clock when the two differ by a
    /// second or more. A clock that is set here is never corrected.
    ///
    /// Give the store the same clock ([`MemoryStore::with_clock`](crate::store::MemoryStore::with_clock)), because
    /// waiting calls expire by the store's time.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the validator of arguments; the `jsonschema` crate by default.
    pub fn validator(mut self, validator: impl Validator + 'static) -> Self {
        self.validator = Arc::new(validator);
        self
    }

    /// Adds a repairer of arguments that are almost JSON, in addition to the built-in ones. `repair` returns the
    /// corrected text, or `None` if the text does not have the defect that it corrects.
    ///
    /// The repairer runs only if the policy names it in `repair.allowed`, at most once for a call, and only on
    /// arguments that could not be parsed. The corrected text is parsed and validated like any other. The call's record
    /// contains the repairer's name.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// let policy = ToolPolicy::from_toml(r#"repair.allowed = ["byte_order_mark"]"#)?;
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, policy)
    ///     .repairer("byte_order_mark", |text| text.strip_prefix('\u{feff}').map(str::to_owned))
    ///     .build()?;
    /// # drop(runner);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn repairer(
        mut self,
        name: impl Into<String>,
        repair: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.repairers.push((name.into(), Arc::new(repair)));
        self
    }

    /// Sets the look-up that turns the ids in one argument into names. The person who decides on a call of the tool
    /// sees the names. [`build`](Self::build) fails if the tool or the argument does not exist, or if the argument is
    /// sensitive.
    pub fn names(
        mut self,
        tool: impl Into<Arc<str>>,
        argument: impl Into<Arc<str>>,
        lookup: impl NameLookup + 'static,
    ) -> Self {
        self.names.insert((tool.into(), argument.into()), Arc::new(lookup));
        self
    }

    /// Sets the operators' sink. It receives the failures of calls, connections, stores, models and parts of the
    /// application, each with the text of the error. There is none by default.
    ///
    /// The sink is called inline, so it must not block. Pass the text to another task. A panic in the sink is caught.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    /// # use tool_runtime::{ToolError, tool};
    /// # /// Adds.
    /// # #[tool(name = "math__add", effect = read_only, redact = ["$"])]
    /// # fn add(
    /// #     /// One.
    /// #     a: i64,
    /// # ) -> Result<i64, ToolError> { Ok(a) }
    ///
    /// let catalog = ToolCatalog::builder().tool::<add>().build()?;
    /// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["math__add"]))
    ///     .failures(|failure| eprintln!("{}: {}", failure.code, failure.text))
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn failures(mut self, sink: impl Fn(&Failure<'_>) + Send + Sync + 'static) -> Self {
        self.failures = Failures(Some(Arc::new(sink)));
        self
    }

    /// Sets whether the span of a tool contains its masked arguments and the part of its result that everyone may see
    /// (`gen_ai.tool.call.arguments` and `gen_ai.tool.call.result`); `false` by default.
    pub const fn span_values(mut self, wanted: bool) -> Self {
        self.span_values = wanted;
        self
    }

    /// Returns the problems of the policy and its allowlists that [`build`](Self::build) would report for the catalog
    /// and the repairers of this builder. This check needs no adapters, so a command or a test can run it.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// let problems = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::allow(["math__add"])).check();
    /// assert_eq!(problems[0].path(), "allowed_tools");
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = self.policy.check(self.catalog.specs(), self.repairer_names());
        CompiledCatalog::unprepared(Arc::clone(&self.validator)).prepared(&self.catalog, &self.policy, &mut problems);
        problems
    }

    /// Returns the rules of the policy that are valid, but probably not what their author expects: tables of
    /// `approvals.tools` for tools whose calls no rule sends to a person. [`build`](Self::build) accepts them.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
    ///
    /// # /// Deletes the note.
    /// # #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
    /// # fn delete() -> Result<String, ToolError> { Ok("deleted".to_owned()) }
    /// let catalog = ToolCatalog::builder().tool::<delete>().build()?;
    /// let policy = r#"{
    ///     "allowed_tools": ["notes__delete"],
    ///     "approvals": { "tools": { "notes__delete": { "required": 2 } } }
    /// }"#;
    /// let builder = ToolRunner::builder(catalog, ToolPolicy::from_json(policy)?);
    /// assert_eq!(builder.warnings()[0].path(), "approvals.tools.notes__delete");
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<Problem> {
        approval_rules::warnings(&self.policy, &self.catalog)
    }

    /// Builds the runner.
    ///
    /// # Errors
    /// The error lists every problem: mistakes in the policy and its allowlists, mistakes in the look-ups of names,
    /// unbound capabilities of tools that some run may call, and a missing call of [`approvals`](Self::approvals) if
    /// the policy can require an approval.
    pub fn build(self) -> Result<ToolRunner, BuildError> {
        let failures = self.failures.clone();
        let mut policy = self.policy.check(self.catalog.specs(), self.repairer_names());
        let validator = ContainedValidator::new(Arc::clone(&self.validator), failures.clone());
        let compiled = CompiledCatalog::unprepared(Arc::new(validator));
        let compiled = compiled.prepared(&self.catalog, &self.policy, &mut policy);
        let (unbound, connections) = self.unbound();
        let found = BuildProblems {
            policy,
            unbound,
            connections,
            names: names::problems(&self.names, &self.catalog),
            asks: if self.approvals.is_none() {
                approval_rules::of_catalog(&self.policy, &self.catalog)
            } else {
                Vec::new()
            },
        };
        found.into_result()?;
        self.log_unready();
        let (store, clock, store_clock) = timed(&self.store, self.store_is_own, self.clock);
        let repairer = |(name, repair): (String, Arc<Repair>)| {
            let repair = Contained::new(repair, failures.clone());
            (name, Arc::new(move |text: &str| repair.repair(text)) as Arc<Repair>)
        };
        let repairers = self.repairers.into_iter().map(repairer).collect();
        let contained = |lookup| Contained::new(lookup, failures.clone());
        let names = self.names.into_iter().map(|(bound, lookup)| (bound, contained(lookup))).collect();
        Ok(ToolRunner {
            shared: Arc::new(Shared {
                catalog: self.catalog,
                policy: self.policy,
                capabilities: self.capabilities,
                broker: self.broker.map(|broker| Contained::new(broker, failures.clone())),
                approvals: self.approvals.unwrap_or(false),
                approval_ttl: self.approval_ttl,
                lease: self.lease,
                owner: uuid::Uuid::new_v4().simple().to_string(),
                attempts: AtomicU64::new(0),
                store_is_own: self.store_is_own,
                store_of_application: Arc::new(Contained::new(self.store, failures.clone())),
                store: Contained::new(store, failures.clone()),
                digests: Digests::new(self.digest_key),
                clock: Contained::new(clock, failures.clone()),
                store_clock,
                compiled,
                views: Views::default(),
                repairers,
                names,
                failures: self.failures,
                version: OnceLock::new(),
                span_values: self.span_values,
            }),
        })
    }

    /// Returns the names of the application's repairers and of the built-in ones.
    fn repairer_names(&self) -> impl Iterator<Item = &str> {
        self.repairers.iter().map(|(name, _)| name.as_str()).chain(built_in().map(|(name, _)| name))
    }

    /// Logs the tools of MCP servers that the policy allows and that cannot run. This is not an error, because a
    /// server may change its tools at any time.
    fn log_unready(&self) {
        for tool in self.policy.mentioned().filter(|name| is_discovered(name)) {
            if let Some(why) = self.catalog.unready(&self.policy, tool) {
                let published = self.catalog.get(tool).and_then(|spec| spec.pin).map(tracing::field::display);
                tracing::warn!(tool, published, code = why.code(), "a tool that the policy allows cannot run: {why}");
            }
        }
    }

    /// Returns the tools that some run could execute.
    fn used(&self) -> impl Iterator<Item = &Entry> {
        self.catalog.entries().map(AsRef::as_ref).filter(|entry| self.policy.mentions(entry.spec.name.as_str()))
    }

    /// Returns the unbound capabilities, each with the tools that need it, and the subset of them that are connections.
    fn unbound(&self) -> (BTreeMap<&'static str, BTreeSet<String>>, BTreeSet<&'static str>) {
        let mut connections = BTreeSet::new();
        let mut unbound: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for entry in self.used() {
            for requirement in &entry.requirements {
                let bound = match requirement.source {
                    InjectedFrom::Capability => self.capabilities.get(requirement.type_id).is_some(),
                    InjectedFrom::Connection(_) => self.broker.is_some(),
                    InjectedFrom::Context => true,
                };
                if !bound {
                    if matches!(requirement.source, InjectedFrom::Connection(_)) {
                        connections.insert(requirement.name);
                    }
                    unbound.entry(requirement.name).or_default().insert(entry.spec.name.to_string());
                }
            }
        }
        (unbound, connections)
    }
}

/// A store, the clock of the runner, and the same clock again if the store's time corrects it.
type Timekeeping = (Arc<dyn Store>, Arc<dyn Clock>, Option<Arc<StoreClock>>);

/// Returns the store and the clock of a runner. Unless the application set a clock, the store's time corrects the
/// system's. The default store in memory needs no correction, because its time is the machine's.
fn timed(store: &Arc<dyn Store>, is_own: bool, clock: Option<Arc<dyn Clock>>) -> Timekeeping {
    match clock {
        Some(clock) => (Arc::clone(store), clock, None),
        None if is_own => (Arc::clone(store), Arc::new(SystemClock), None),
        None => {
            let clock = Arc::new(StoreClock::default());
            let store = Timed { store: Arc::clone(store), clock: Arc::clone(&clock) };
            (Arc::new(store), Arc::clone(&clock) as _, Some(clock))
        }
    }
}

impl fmt::Debug for RunnerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerBuilder").field("tools", &self.catalog.len()).finish_non_exhaustive()
    }
}
