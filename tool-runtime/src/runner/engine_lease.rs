//! A run in the hands of an engine, which starts a step again as soon as its process is gone.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::runner::{RunOptions, ToolRunner};
use crate::store::{Document, Key, Query, RunLease, Space, StoreError, StoredRun, Transaction, attempts, runs};

impl ToolRunner {
    /// Takes a run for this attempt of an engine: from now on, what earlier attempts write is refused.
    pub(crate) async fn seize(&self, run_id: &Arc<str>, options: &RunOptions) -> Result<RunLease, StoreError> {
        let (mut party, owner) = (StoredRun::new(Arc::clone(run_id), ""), self.shared.attempt());
        party.principal.clone_from(&options.principal);
        party.tenant.clone_from(&options.tenant);
        let change = move |transaction: &mut Transaction| attempts::seize(transaction, &party, &owner);
        self.shared.store.transact(vec![Key::run(Arc::clone(run_id))], change).await
    }

    /// Checks that no later attempt has taken the run.
    pub(crate) async fn still_holds(&self, lease: &RunLease) -> Result<(), StoreError> {
        let held = lease.clone();
        let change = move |transaction: &mut Transaction| runs::check(transaction, &held);
        self.shared.store.transact(vec![Key::run(Arc::clone(&lease.run_id))], change).await
    }

    /// Returns how long another process may still execute calls of a run that has these options, for engines that start a
    /// step again as soon as its process is gone. `None` if none does. Calls of another principal or tenant under the run's id are not looked at.
    pub(crate) async fn held_elsewhere(
        &self,
        run_id: &str,
        options: &RunOptions,
    ) -> Result<Option<Duration>, StoreError> {
        let mut query = Query { scope: Some(run_id.into()), due: Some(Timestamp::MAX), ..Query::new(Space::Call) };
        let mut held = None;
        loop {
            let page = self.shared.store.list(&query).await?;
            let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
            let theirs = page.iter().filter_map(|listed| match &listed.document {
                Document::Call(entry) => entry
                    .unseen()
                    .filter(|record| record.principal == options.principal && record.tenant == options.tenant)
                    .and(listed.document.due()),
                _ => None,
            });
            held = held.max(theirs.filter_map(|until| self.time_until(until)).max());
            let Some(next) = next else { return Ok(held) };
            query.after = next;
        }
    }

    /// Returns the time until then. `None` if it is over.
    pub(crate) fn time_until(&self, then: Timestamp) -> Option<Duration> {
        let left = then.duration_since(self.shared.clock.now());
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }
}
