//! What other processes may still execute, for engines that start a step again as soon as its process is gone.

use std::time::Duration;

use jiff::Timestamp;

use crate::runner::ToolRunner;
use crate::store::{Query, Space, StoreError};

impl ToolRunner {
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
