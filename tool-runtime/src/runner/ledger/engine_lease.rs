//! Leases for runs that a workflow engine executes. An engine repeats a step as soon as its process is gone.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::runner::ledger::lease_time::LeaseTime;
use crate::runner::{RunOptions, ToolRunner};
use crate::store::pages::Search;
use crate::store::{
    Document, DocumentKind, Key, Query, Store as _, StoreError, StoredRun, Transaction, attempts, runs, transact,
};

impl ToolRunner {
    /// Takes a run for an attempt of a workflow engine: from now on the writes of earlier attempts are refused. Returns
    /// the options of the run in this attempt, for [`run`](Self::run), for
    /// [`Agent::restore`](crate::agent::Agent::restore) and for [`under_lease`](Self::under_lease).
    ///
    /// An engine repeats a step as soon as its process is gone, or seems to be, so two attempts can run at the same
    /// time. Each attempt first takes the lease of its run. From then on the store refuses the writes of earlier
    /// attempts, because it compares the lease in the transaction of each write. The lease does not expire: an attempt
    /// has it until the next attempt takes it.
    ///
    /// `run_id` replaces the id in the options. Use the same id in each attempt, because idempotency keys depend on it.
    /// If an earlier process may still execute a call of the run, this method waits until that call's lease ends, takes
    /// the run, and waits for a call that began meanwhile. Each wait is at most as long as
    /// [`RunnerBuilder::lease`](crate::runner::RunnerBuilder::lease).
    ///
    /// ```
    /// use tool_runtime::agent::Agent;
    /// use tool_runtime::store::StoreError;
    /// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
    /// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
    /// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello.")]));
    /// let options = RunOptions::new().principal("ada");
    ///
    /// let leased = runner.engine_lease("order-1", options.clone()).await?;
    /// let mut conversation = agent.converse(runner.run(leased.clone()));
    /// runner.under_lease(&leased, conversation.send("Hi!")).await?;
    ///
    /// // The process was only slow, and the engine has started another attempt.
    /// let leased_anew = runner.engine_lease("order-1", options).await?;
    /// let late = runner.under_lease(&leased, conversation.send("Are you there?")).await;
    /// assert!(matches!(late, Err(StoreError::Fenced)));
    /// # Ok(()) })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another process still executes a call after the wait. The same error if the store was
    /// restored from a backup that lacks a part of the run, until a person has released the run. In both cases, try
    /// again later. [`StoreError::Duplicate`] if workers share the run, or if it belongs to another principal or tenant
    /// than the options name. Otherwise the store failed.
    pub async fn engine_lease(
        &self,
        run_id: impl Into<Arc<str>>,
        options: RunOptions,
    ) -> Result<RunOptions, StoreError> {
        let run_id = run_id.into();
        let options = options.run_id(Arc::clone(&run_id));
        if let Some(left) = self.executed_elsewhere(&run_id, &options).await? {
            tokio::time::sleep(left).await;
            // A process that still runs has renewed the lease of its call.
            if self.executed_elsewhere(&run_id, &options).await?.is_some() {
                return Err(StoreError::Fenced);
            }
        }
        let (mut party, owner) = (StoredRun::new(Arc::clone(&run_id), ""), self.shared.attempt());
        party.principal.clone_from(&options.principal);
        party.tenant.clone_from(&options.tenant);
        let change = move |transaction: &mut Transaction| attempts::seize(transaction, &party, &owner);
        let lease = transact(&self.shared.store, vec![Key::run(Arc::clone(&run_id))], change).await?;
        // Meanwhile an earlier attempt may have begun a call. It can no longer renew the lease of that call.
        if let Some(left) = self.executed_elsewhere(&run_id, &options).await? {
            tokio::time::sleep(left).await;
        }
        Ok(options.held(lease))
    }

    /// Runs the work of a step, and returns its result only while no later attempt has the run. `options` come from
    /// [`engine_lease`](Self::engine_lease). Journal only a result that this method returns.
    ///
    /// A model request and a call that only reads write nothing that the store could refuse. This method therefore
    /// checks the lease in the store before the work, after it, and before the work continues in a process that was
    /// stopped for longer than [`RunnerBuilder::lease`](crate::runner::RunnerBuilder::lease).
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if a later attempt has the run, or if the options have no lease; otherwise the store
    /// failed. In both cases the work may have begun.
    pub async fn under_lease<T>(&self, options: &RunOptions, work: impl Future<Output = T>) -> Result<T, StoreError> {
        let lease = options.lease.as_ref().ok_or(StoreError::Fenced)?;
        let confirmed = LeaseTime::now();
        let confirm = || async {
            let requested_at = LeaseTime::now();
            runs::confirm(&self.shared.store, lease).await?;
            confirmed.set(&requested_at);
            Ok(())
        };
        confirm().await?;
        let done = confirmed.attend(self.shared.lease, confirm, work).await?;
        confirm().await?;
        Ok(done)
    }

    /// Returns how long another process may still execute calls of a run; `None` if none does. Calls of another
    /// principal or tenant under the run's id do not count.
    async fn executed_elsewhere(&self, run_id: &str, options: &RunOptions) -> Result<Option<Duration>, StoreError> {
        let query = Query { scope: Some(run_id.into()), due: Some(Timestamp::MAX), ..Query::new(DocumentKind::Call) };
        // Leases end by the store's time, which the clock of this process may not know yet.
        let now = self.shared.store.now().await?;
        let (mut search, mut longest) = (Search::of(query), None);
        while let Some(page) = search.next(&self.shared.store).await? {
            let leases = page.iter().filter_map(|listed| match &listed.document {
                Document::Call(entry) => entry
                    .open_record()
                    .filter(|record| record.principal == options.principal && record.tenant == options.tenant)
                    .and(listed.document.due()),
                _ => None,
            });
            longest = longest.max(leases.filter_map(|until| time_between(now, until)).max());
        }
        search.end()?;
        Ok(longest)
    }

    /// Returns the time until `then` by the runner's clock; `None` if `then` has passed. An engine can set a timer for
    /// the expiry of a waiting call ([`WaitingCall::expires_at`](crate::agent::WaitingCall)) with it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use tool_runtime::testing::ManualClock;
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
