//! A run in the hands of an engine, which starts a step again as soon as its process is gone.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::runner::ToolRunner;
use crate::store::{Key, Query, RunLease, Space, StoreError, Transaction, attempts, runs};

impl ToolRunner {
    /// Takes a run for this attempt of an engine: from now on, what earlier attempts write is refused.
    pub(crate) async fn seize(&self, run_id: &Arc<str>) -> Result<RunLease, StoreError> {
        let (id, owner) = (Arc::clone(run_id), self.shared.attempt());
        let change = move |transaction: &mut Transaction| attempts::seize(transaction, &id, &owner);
        self.shared.store.transact(vec![Key::run(Arc::clone(run_id))], change).await
    }

    /// Checks that no later attempt has taken the run.
    pub(crate) async fn still_holds(&self, lease: &RunLease) -> Result<(), StoreError> {
        let held = lease.clone();
        let change = move |transaction: &mut Transaction| runs::check(transaction, &held);
        self.shared.store.transact(vec![Key::run(Arc::clone(&lease.run_id))], change).await
    }

    /// Returns how long another process may still execute calls of a run. `None` if none does.
    pub(crate) async fn held_elsewhere(&self, run_id: &str) -> Result<Option<Duration>, StoreError> {
        let query = Query { scope: Some(run_id.into()), due: Some(Timestamp::MAX), ..Query::new(Space::Call) };
        let open = self.shared.store.list(&query).await?;
        Ok(open.iter().filter_map(|listed| self.time_until(listed.document.due()?)).max())
    }

    /// Returns the time until then. `None` if it is over.
    pub(crate) fn time_until(&self, then: Timestamp) -> Option<Duration> {
        let left = then.duration_since(self.shared.clock.now());
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }
}
