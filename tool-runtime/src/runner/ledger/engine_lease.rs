//! [`EngineLease`]: a run driven by a workflow engine, which starts a step again as soon as its process is gone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::runner::{RunOptions, ToolRunner};
use crate::store::pages::Search;
use crate::store::{Document, DocumentKind, Key, Query, RunLease, StoreError, StoredRun, Transaction, attempts, runs};

/// The right of one attempt of a workflow engine to a run. [`ToolRunner::engine_lease`] makes it.
///
/// An engine starts a step again as soon as its process is gone, or seems to be, so two attempts can run at once. Each
/// attempt first takes the lease of its run. The store then refuses the writes of earlier attempts: it compares the
/// lease in the transaction of each write. A lease has no end; it holds until the next attempt takes the run.
///
/// ```
/// use tool_runtime::agent::{Agent, ScriptedModel, ScriptedTurn};
/// use tool_runtime::store::StoreError;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
/// let options = RunOptions::new().principal("ada");
///
/// let lease = runner.engine_lease("order-1", options.clone()).await?;
/// let mut conversation = agent.converse(runner.run(lease.options()));
/// conversation.send("Hi!").await;
/// // Before the engine journals the result of a step.
/// lease.confirm().await?;
///
/// // The process was only slow, and the engine has started another attempt.
/// let next = runner.engine_lease("order-1", options).await?;
/// assert!(matches!(lease.confirm().await, Err(StoreError::Fenced)));
/// next.confirm().await?;
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct EngineLease {
    runner: ToolRunner,
    options: RunOptions,
    lease: RunLease,
}

impl EngineLease {
    /// Returns the id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.lease.run_id
    }

    /// Returns the options of the run in this attempt, for [`ToolRunner::run`] or
    /// [`Agent::restore`](crate::agent::Agent::restore). Each write of the run is checked against the lease.
    pub fn options(&self) -> RunOptions {
        self.options.clone()
    }

    /// Checks that no later attempt has taken the run. Call it before you journal the result of a step, because a model
    /// request and a call that only reads write nothing that the store could refuse.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if a later attempt has the run; otherwise the store failed.
    pub async fn confirm(&self) -> Result<(), StoreError> {
        let lease = self.lease.clone();
        let change = move |transaction: &mut Transaction| runs::check(transaction, &lease);
        self.runner.shared.store.transact(vec![Key::run(Arc::clone(&self.lease.run_id))], change).await
    }
}

impl fmt::Debug for EngineLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineLease").field("run_id", &self.lease.run_id).finish_non_exhaustive()
    }
}

impl ToolRunner {
    /// Takes a run for an attempt of a workflow engine: from now on the writes of earlier attempts are refused.
    ///
    /// `run_id` is the run's id in each attempt, whatever the options name: idempotency keys depend on it. If an
    /// earlier process may still execute a call of the run, this first waits until that call's lease ends, at most as
    /// long as [`RunnerBuilder::lease`](crate::runner::RunnerBuilder::lease).
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another process still executes a call after the wait: try again later.
    /// [`StoreError::Duplicate`] if workers share the run, or if it belongs to another principal or tenant than the
    /// options name. Otherwise the store failed.
    pub async fn engine_lease(
        &self,
        run_id: impl Into<Arc<str>>,
        options: RunOptions,
    ) -> Result<EngineLease, StoreError> {
        let run_id = run_id.into();
        let options = options.run_id(Arc::clone(&run_id));
        if let Some(left) = self.executed_elsewhere(&run_id, &options).await? {
            tokio::time::sleep(left).await;
            // A process that still runs has prolonged the lease of its call.
            if self.executed_elsewhere(&run_id, &options).await?.is_some() {
                return Err(StoreError::Fenced);
            }
        }
        let (mut party, owner) = (StoredRun::new(Arc::clone(&run_id), ""), self.shared.attempt());
        party.principal.clone_from(&options.principal);
        party.tenant.clone_from(&options.tenant);
        let change = move |transaction: &mut Transaction| attempts::seize(transaction, &party, &owner);
        let lease = self.shared.store.transact(vec![Key::run(run_id)], change).await?;
        Ok(EngineLease { runner: self.clone(), options: options.held(lease.clone()), lease })
    }

    /// Returns how long another process may still execute calls of a run; `None` if none does. Calls of another
    /// principal or tenant under the run's id do not count.
    async fn executed_elsewhere(&self, run_id: &str, options: &RunOptions) -> Result<Option<Duration>, StoreError> {
        let query = Query { scope: Some(run_id.into()), due: Some(Timestamp::MAX), ..Query::new(DocumentKind::Call) };
        // The time of the leases: this process may be the first of its machine to read it.
        let now = self.shared.store.now().await?;
        let (mut search, mut longest) = (Search::of(query), None);
        while let Some(page) = self.shared.store.next(&mut search).await? {
            let leases = page.iter().filter_map(|listed| match &listed.document {
                Document::Call(entry) => entry
                    .unseen()
                    .filter(|record| record.principal == options.principal && record.tenant == options.tenant)
                    .and(listed.document.due()),
                _ => None,
            });
            longest = longest.max(leases.filter_map(|until| time_between(now, until)).max());
        }
        search.end()?;
        Ok(longest)
    }

    /// Returns the time until `then` by the runner's clock; `None` if `then` has passed. An engine sets its timer for
    /// the expiry of a waiting call with it ([`WaitingCall::expires_at`](crate::agent::WaitingCall)).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use tool_runtime::store::ManualClock;
    /// use tool_runtime::{ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let noon = "2026-01-01T12:00:00Z".parse()?;
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all());
    /// let runner = runner.clock(ManualClock::at(noon)).build()?;
    /// assert_eq!(runner.time_until("2026-01-01T13:00:00Z".parse()?), Some(Duration::from_secs(3600)));
    /// assert_eq!(runner.time_until(noon), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn time_until(&self, then: Timestamp) -> Option<Duration> {
        time_between(self.shared.clock.now(), then)
    }
}

fn time_between(now: Timestamp, then: Timestamp) -> Option<Duration> {
    Duration::try_from(then.duration_since(now)).ok().filter(|left| !left.is_zero())
}
