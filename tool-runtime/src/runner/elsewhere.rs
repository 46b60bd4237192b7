//! What other processes began and may still execute.

use std::time::Duration;

use jiff::Timestamp;

use crate::call::CallId;
use crate::runner::waiting::owns;
use crate::runner::{Run, RunOptions, ToolRunner};
use crate::store::{Document, Query, Space, StoreError, Transaction, ledger};

impl ToolRunner {
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

impl Run {
    /// Whether a call of this run began here or elsewhere and has not been seen to end. One whose owner is gone is
    /// closed: its record says that nobody saw its end.
    pub(super) async fn unfinished(&self, call_id: &CallId) -> Result<bool, StoreError> {
        self.unfinished_of(call_id, None).await
    }

    /// As [`unfinished`](Self::unfinished), for a call of this tool alone.
    pub(super) async fn unfinished_of(&self, call_id: &CallId, tool: Option<&str>) -> Result<bool, StoreError> {
        let ours = |document: &Document| match document {
            Document::Call(entry) => entry.unseen().is_some_and(|record| {
                record.tool_call_id == *call_id
                    && tool.is_none_or(|tool| record.name == tool)
                    && owns(self, record.principal.as_deref(), record.tenant.as_deref())
            }),
            _ => false,
        };
        let scope = Some(self.identity().clone());
        let mut query = Query { scope, due: Some(Timestamp::MAX), ..Query::new(Space::Call) };
        let key = loop {
            let page = self.shared().store.list(&query).await?;
            let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
            if let Some(found) = page.into_iter().find(|listed| ours(&listed.document)) {
                break found.key;
            }
            let Some(next) = next else { return Ok(false) };
            query.after = next;
        };
        let lease = self.lease();
        let mut keys = self.keys();
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            ledger::close_unseen(transaction, &key, lease.as_ref())
        };
        self.shared().store.transact(keys, change).await?;
        Ok(true)
    }
}
