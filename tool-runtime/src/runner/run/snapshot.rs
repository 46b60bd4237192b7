//! [`RunSnapshot`]: the state of a run as a document, from which another process restores the run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::call::{Caller, RunSummary};
use crate::hydrate::EvidenceSet;
use crate::policy::{Last, Policies, RunPolicy, RunTools, Spend, Standing, ToolPolicy};
use crate::runner::ledger::client::LedgerClient;
use crate::runner::run::state::RunState;
use crate::runner::{Run, RunOptions};
use crate::store::{Balance, PendingCall, Store, StoreError, Waiting};

/// The version of the format. The library reads no other version.
const VERSION: u32 = 1;

/// The state of a run: principal with its roles and attributes, tenant, caller, tools, policies, labels, evidence,
/// spent budget, loop guard, call ids, summary, the model's mistakes, the tools offered to the model, calls with
/// effects that began and whose result was not returned, and waiting calls.
///
/// Keep snapshots where clients can neither read nor change them: the library trusts them, and they contain the
/// arguments of waiting calls, including sensitive ones. `Debug` does not show them. A waiting call is finished once
/// for each store: if a snapshot is restored over two independent stores, the call can be finished in both.
///
/// ```
/// use tool_runtime::runner::RunSnapshot;
/// use tool_runtime::{RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// # /// Rolls a die.
/// # #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// # fn roll() -> Result<u32, ToolError> { Ok(4) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let catalog = ToolCatalog::builder().tool::<roll>().build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["games__roll"])).build()?;
/// let run = runner.run(RunOptions::new().principal("ada"));
/// run.exec(ToolCall::text("call_1", "games__roll", "{}")).await;
/// let document = serde_json::to_string(&run.snapshot().await?)?;
///
/// // Perhaps in another process.
/// let snapshot: RunSnapshot = serde_json::from_str(&document)?;
/// let restored = runner.restore(snapshot, RunOptions::new().principal("ada")).await?;
/// assert_eq!((restored.id(), restored.summary()), (run.id(), run.summary()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSnapshot {
    #[serde(deserialize_with = "version")]
    version: u32,
    pub(in crate::runner) run_id: Arc<str>,
    pub(in crate::runner) principal: Option<Arc<str>>,
    pub(in crate::runner) tenant: Option<Arc<str>>,
    pub(in crate::runner) caller: Caller,
    /// The principal's roles and attributes: first those at the time of the snapshot, then those before each restore.
    pub(in crate::runner) standings: Vec<Standing>,
    pub(in crate::runner) tools: Option<RunTools>,
    /// The policies of the run, and the tools that they let the run see.
    pub(in crate::runner) policies: Policies,
    pub(in crate::runner) visible: RunTools,
    pub(in crate::runner) state: RunState,
    pub(in crate::runner) loop_guard: Option<Last>,
    pub(in crate::runner) evidence: EvidenceSet,
    pub(in crate::runner) spent: Spend,
    pub(in crate::runner) waiting: Vec<Waiting>,
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        _ => Err(serde::de::Error::custom("the snapshot was written by another version of the library")),
    }
}

impl RunSnapshot {
    /// Returns the id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Returns the run's options at the time of the snapshot, without connections.
    pub(crate) fn options(&self) -> RunOptions {
        let mut options = RunOptions::new().run_id(Arc::clone(&self.run_id)).caller(self.caller.clone());
        if let Some(principal) = &self.principal {
            options = options.principal(Arc::clone(principal));
        }
        if let Some(tenant) = &self.tenant {
            options = options.tenant(Arc::clone(tenant));
        }
        let Some(Standing { roles, attributes }) = self.standings.first() else { return options };
        let options = roles.iter().fold(options, |options, role| options.role(Arc::clone(role)));
        let attributes = attributes.iter().map(|(name, value)| (Arc::clone(name), Arc::clone(value)));
        attributes.fold(options, |options, (name, value)| options.attribute(name, value))
    }

    /// Returns the calls, the tokens and the cost of the run.
    #[must_use]
    pub const fn summary(&self) -> &RunSummary {
        &self.state.summary
    }

    /// Returns the budgets that a policy sets for the run, with the used amounts. The run's own amounts are as of the
    /// snapshot. Amounts that it shares with other runs of its principal and tenant are read from the store.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub async fn balances(&self, policy: &ToolPolicy, store: &dyn Store) -> Result<Vec<Balance>, StoreError> {
        let party = (self.tenant.as_ref(), self.principal.as_ref());
        Balance::all(store, &RunPolicy::new(policy.clone()), self.spent, party).await
    }

    /// Returns the principal that the run acts for.
    pub(crate) const fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// Returns the tenant of the run.
    pub(crate) const fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.as_ref()
    }

    /// Returns the calls that wait for a person or a client.
    pub fn waiting(&self) -> impl Iterator<Item = &PendingCall> {
        self.waiting.iter().map(|waiting| &waiting.call)
    }
}

impl fmt::Debug for RunSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSnapshot").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

/// Takes the snapshot of a run, see [`Run::snapshot`].
pub(in crate::runner) async fn snapshot(run: &Run) -> Result<RunSnapshot, StoreError> {
    let waiting = LedgerClient(run).all_waiting().await.map_err(|error| run.store_unread(error))?;
    let options = run.options();
    let spent = run.spent();
    Ok(RunSnapshot {
        version: VERSION,
        run_id: Arc::clone(run.identity()),
        principal: options.principal.clone(),
        tenant: options.tenant.clone(),
        caller: options.caller.clone(),
        standings: run.policy().standings(options.standing()),
        tools: options.tools.clone(),
        policies: run.policy().policies(),
        visible: run.catalog().specs().map(|spec| spec.name.as_str().into()).collect(),
        state: run.state().clone(),
        loop_guard: run.loop_guard().last(),
        evidence: run.evidence().clone(),
        spent,
        waiting,
    })
}
