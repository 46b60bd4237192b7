//! The gate: the only place through which a tool runs. It knows no provider and no model.

mod approval;
mod client;
mod exec;
mod invoke;
mod loops;
mod open;
mod overlooked;
mod run;
mod settle;
mod snapshot;
mod stages;
mod state;
mod stop;
mod telemetry;

pub use approval::{ApprovalDecision, NotPending};
pub use run::{Run, RunOptions};
pub use snapshot::{RestoreError, RunSnapshot};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::capability::{Capabilities, ConnectionBroker, Source};
use crate::catalog::{CatalogError, CompiledCatalog, Entry, ToolCatalog};
use crate::contain::caught;
use crate::hydrate::Repairer;
use crate::hydrate::repair::BUILT_IN;
use crate::policy::{PolicyContext, PolicyProblem, Stage, ToolPolicy, Verdict};
use crate::schema::validator::{JsonSchemaValidator, Validator};
use crate::store::{Clock, MemoryStore, Store, SystemClock};
use crate::tool::ToolSpec;

/// Runs tools: one catalog, one policy, the adapters of one application.
///
/// Made by [`ToolRunner::builder`] and [`RunnerBuilder::build`]; each conversation gets a [`Run`].
#[derive(Clone)]
pub struct ToolRunner {
    shared: Arc<Shared>,
}

/// What all runs of a runner share.
struct Shared {
    catalog: Arc<ToolCatalog>,
    policy: ToolPolicy,
    capabilities: Capabilities,
    broker: Option<Arc<dyn ConnectionBroker>>,
    approvals: bool,
    approval_ttl: Duration,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    compiled: CompiledCatalog,
    repairers: Vec<Arc<dyn Repairer>>,
}

/// The parts of a runner that have a default.
pub struct RunnerBuilder {
    shared: Shared,
}

impl ToolRunner {
    /// Starts a runner from what has no safe default: the catalog and the policy.
    #[must_use]
    pub fn builder(catalog: impl Into<Arc<ToolCatalog>>, policy: ToolPolicy) -> RunnerBuilder {
        RunnerBuilder {
            shared: Shared {
                catalog: catalog.into(),
                policy,
                capabilities: Capabilities::new(),
                broker: None,
                approvals: false,
                approval_ttl: Duration::from_secs(24 * 60 * 60),
                store: Arc::new(MemoryStore::new()),
                clock: Arc::new(SystemClock),
                compiled: CompiledCatalog::unprepared(Arc::new(JsonSchemaValidator)),
                repairers: Vec::new(),
            },
        }
    }

    /// Starts a run: one conversation or one task of an agent.
    #[must_use]
    pub fn run(&self, options: RunOptions) -> Run {
        Run::start(Arc::clone(&self.shared), options)
    }

    /// Compiles every validator now, for applications that want to pay before the first call.
    ///
    /// # Errors
    /// The schemas that do not compile.
    pub fn warm(&self) -> Result<(), CatalogError> {
        self.shared.compiled.warm(&self.shared.catalog)
    }

    /// The catalog.
    #[must_use]
    pub fn catalog(&self) -> &ToolCatalog {
        &self.shared.catalog
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &ToolPolicy {
        &self.shared.policy
    }

    /// Where records and pending calls are.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }
}

impl RunnerBuilder {
    /// Binds the adapters.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.shared.capabilities = capabilities;
        self
    }

    /// Resolves connections.
    #[must_use]
    pub fn broker(mut self, broker: impl ConnectionBroker + 'static) -> Self {
        self.shared.broker = Some(Arc::new(broker));
        self
    }

    /// Somebody can approve: tools that need an approval are visible, and their calls wait.
    /// Without it they are invisible and denied.
    #[must_use]
    pub fn approvals(mut self, possible: bool) -> Self {
        self.shared.approvals = possible;
        self
    }

    /// How long a call may wait for a person or a client; a day by default.
    #[must_use]
    pub fn approval_ttl(mut self, ttl: Duration) -> Self {
        self.shared.approval_ttl = ttl;
        self
    }

    /// Keeps records and pending calls; in memory by default.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.shared.store = Arc::new(store);
        self
    }

    /// Tells the time of records; the system's clock by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.shared.clock = Arc::new(clock);
        self
    }

    /// Checks arguments; the `jsonschema` crate by default.
    #[must_use]
    pub fn validator(mut self, validator: impl Validator + 'static) -> Self {
        self.shared.compiled = CompiledCatalog::unprepared(Arc::new(validator));
        self
    }

    /// Adds a repairer that the policy can name, beside the built-in ones.
    #[must_use]
    pub fn repairer(mut self, repairer: impl Repairer + 'static) -> Self {
        self.shared.repairers.push(Arc::new(repairer));
        self
    }

    /// Checks the policy against the catalog and that every visible tool finds its capabilities.
    ///
    /// # Errors
    /// All problems together.
    pub fn build(self) -> Result<ToolRunner, RunnerError> {
        let mut shared = self.shared;
        let repairers: Vec<_> = shared.repairers.iter().filter_map(|one| caught(|| one.name().to_owned())).collect();
        let repairers = repairers.iter().map(String::as_str).chain(BUILT_IN.iter().map(|one| one.name()));
        let mut policy = shared.policy.check(shared.catalog.specs(), repairers);
        shared.compiled = shared.compiled.prepared(&shared.catalog, &shared.policy, &mut policy);
        let mut unbound: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for entry in shared.catalog.entries().filter(|entry| shared.could_run(&entry.spec)) {
            for requirement in &entry.requirements {
                let bound = match requirement.source {
                    Source::Capability => shared.capabilities.get(requirement.type_id).is_some(),
                    Source::Connection(_) => shared.broker.is_some(),
                    Source::Context => true,
                };
                if !bound {
                    unbound.entry(requirement.name).or_default().push(entry.spec.name.to_string());
                }
            }
        }
        if policy.is_empty() && unbound.is_empty() {
            overlooked::in_pins(&shared);
            Ok(ToolRunner { shared: Arc::new(shared) })
        } else {
            Err(RunnerError { policy, unbound })
        }
    }
}

impl Shared {
    /// Some run of this runner could execute the tool.
    fn could_run(&self, spec: &ToolSpec) -> bool {
        self.policy.mentions(spec.name.as_str())
    }

    /// The model of a run with this context may see the tool.
    fn visible(&self, context: &PolicyContext<'_>, entry: &Entry) -> bool {
        match self.policy.decide(context, Stage::Visibility, &entry.subject(), None).verdict {
            Verdict::Allow => true,
            Verdict::RequireApproval => self.approvals,
            Verdict::Deny => false,
        }
    }
}

impl fmt::Debug for ToolRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRunner").field("tools", &self.shared.catalog.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunnerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnerBuilder").field("tools", &self.shared.catalog.len()).finish_non_exhaustive()
    }
}

/// Why a runner cannot be built: everything at once.
#[derive(Debug)]
pub struct RunnerError {
    policy: Vec<PolicyProblem>,
    unbound: BTreeMap<&'static str, Vec<String>>,
}

impl RunnerError {
    /// A stable word: `policy_problem` or `capability_unbound`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        if self.policy.is_empty() { "capability_unbound" } else { "policy_problem" }
    }
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        lines.extend(self.policy.iter().map(ToString::to_string));
        for (capability, tools) in &self.unbound {
            lines.push(format!(
                "the capability `{capability}` is not bound, and {} needs it; bind it with `Capabilities::with` (connections: `RunnerBuilder::broker`)",
                tools.join(", ")
            ));
        }
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for RunnerError {}
