//! What began, here or in another process, and was not seen to end.

use jiff::Timestamp;

use crate::call::CallId;
use crate::runner::Run;
use crate::runner::forsaken::Forsaken;
use crate::runner::waiting::owns;
use crate::store::{Document, Query, Space, StoreError, Transaction, ledger};

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
                    && tool.is_none_or(|tool| *record.name == *tool)
                    && owns(self, record.principal.as_deref(), record.tenant.as_deref())
            }),
            _ => false,
        };
        let scope = Some(self.identity().clone());
        let mut query = Query { scope, due: Some(Timestamp::MAX), ..Query::new(Space::Call) };
        let found = loop {
            let page = self.shared().store.list(&query).await?;
            let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
            if let Some(found) = page.into_iter().find(|listed| ours(&listed.document)) {
                break found;
            }
            let Some(next) = next else { return Ok(false) };
            query.after = next;
        };
        let (lease, key) = (self.lease(), found.key.clone());
        let mut keys = self.keys();
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            ledger::close_unseen(transaction, &key, lease.as_ref())
        };
        let closed = self.shared().store.transact(keys, change).await?;
        if let Document::Call(entry) = &found.document
            && let Some(left) = Forsaken::unseen(self, &found.key, &entry.record).filter(|_| closed)
        {
            left.close(&[]).await;
        }
        Ok(true)
    }
}
