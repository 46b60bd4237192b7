//! [`ToolRunner`]: the catalog, the policy and the adapters of one application.

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
#[cfg(feature = "agent")]
use std::time::Duration;

use jiff::Timestamp;

use crate::call::ToolExecResult;
use crate::catalog::ToolCatalog;
use crate::error::BuildError;
use crate::policy::{RunPolicy, ToolPolicy};
use crate::runner::shared::{OfARun, Shared};
use crate::runner::waiting::approval_rules;
use crate::runner::{Failure, Run, RunOptions, RunnerBuilder};
use crate::store::{Store, StoreError};
#[cfg(feature = "agent")]
use crate::tool::Hash;

/// Runs the tools of one application with its policy and its adapters. Cheap to clone.
///
/// [`ToolRunner::builder`] makes one. Start a [`Run`] for each conversation.
///
/// ```
/// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// /// Rolls a die.
/// #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// fn roll() -> Result<u32, ToolError> {
///     Ok(4)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let catalog = ToolCatalog::builder().tool::<roll>().build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["games__roll"])).build()?;
/// let run = runner.run(RunOptions::new().principal("ada"));
/// let result = run.exec(ToolCall::text("call_1", "games__roll", "{}")).await;
/// assert_eq!(result.to_model(), "4");
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct ToolRunner {
    pub(super) shared: Arc<Shared>,
}

impl ToolRunner {
    /// Returns a builder of a runner. The catalog and the policy are required, because they have no safe default.
    pub fn builder(catalog: impl Into<Arc<ToolCatalog>>, policy: ToolPolicy) -> RunnerBuilder {
        RunnerBuilder::new(catalog.into(), policy)
    }

    /// Starts a run: one conversation or one task of an agent.
    #[must_use]
    pub fn run(&self, options: RunOptions) -> Run {
        Run::start(Arc::clone(&self.shared), RunPolicy::new(self.shared.policy.clone()), options)
    }

    /// Cannot be called, because no type implements [`OfARun`]. It exists for the compiler's message, which points to
    /// [`run`](Self::run).
    #[doc(hidden)]
    pub fn exec<C: OfARun>(&self, call: C) -> Ready<ToolExecResult> {
        ready(call.never())
    }

    /// Compiles the validators of all tools now, so that no call has to compile one.
    ///
    /// # Errors
    /// Lists the schemas that do not compile.
    pub fn warm(&self) -> Result<(), BuildError> {
        self.shared.compiled.warm(&self.shared.catalog)
    }

    /// Returns the catalog.
    #[must_use]
    pub fn catalog(&self) -> &ToolCatalog {
        &self.shared.catalog
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &ToolPolicy {
        &self.shared.policy
    }

    /// Returns the schema of the part of the tool's output that everyone may see. `None` if the tool declares no output
    /// schema.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn shown_schema(&self, entry: &crate::catalog::Entry) -> Option<serde_json::Value> {
        let projector = self.shared.compiled.projector(entry)?;
        Some(projector.shown_schema(&entry.payload.as_ref()?.to_value()))
    }

    /// Returns the store's time, which decides when runs are due, leases end and calls expire.
    pub(crate) async fn store_time(&self) -> Result<Timestamp, StoreError> {
        self.shared.store.now().await
    }

    /// Returns the hash of catalog and policy.
    #[cfg(feature = "agent")]
    pub(crate) fn version(&self) -> Hash {
        self.shared.version()
    }

    /// Returns how long a lease lasts without renewal.
    #[cfg(feature = "agent")]
    pub(crate) fn lease_duration(&self) -> Duration {
        self.shared.lease
    }

    /// Logs a failure that belongs to no run, and reports it to the operators' sink.
    pub(crate) fn report(&self, what: &'static str, code: &str, text: &str) {
        self.shared.failures.report(format_args!("{what}"), &Failure::of_none(code, text));
    }

    /// Returns the policy rules under which a call of an MCP client can wait for a person. With `own` set to `true`,
    /// omits rules for calls on which the policy lets their own principal decide alone.
    ///
    /// A server checks that the list is empty if no approver can reach its store.
    #[must_use]
    pub fn asking_rules(&self, own: bool) -> Vec<String> {
        let Shared { catalog, policy, approvals, .. } = &*self.shared;
        if *approvals { approval_rules::of_clients(policy, catalog, own) } else { Vec::new() }
    }

    /// Returns the store that keeps records and pending calls.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store_of_application
    }
}

impl fmt::Debug for ToolRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRunner").field("tools", &self.shared.catalog.len()).finish_non_exhaustive()
    }
}
