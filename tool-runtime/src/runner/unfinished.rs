//! Calls that began, here or in another process, and were not seen to end.

use jiff::Timestamp;

use crate::call::{CallId, ToolInvocationRecord};
use crate::runner::Run;
use crate::runner::forsaken::Forsaken;
use crate::runner::waiting::owns;
use crate::store::ledger::LedgerEntry;
use crate::store::{Document, Key, Listed, Query, Space, StoreError, Transaction, ledger};

/// An open entry of the ledger: its call began and has no end.
pub(super) struct Unfinished {
    pub(super) key: Key,
    pub(super) entry: Box<LedgerEntry>,
}

impl Run {
    /// Returns the open entry of a call of this run, of a tool if one is named.
    ///
    /// Looking closes nothing: only the gate lets the tool reconcile or repeat a call whose process is gone.
    pub(super) async fn unfinished(
        &self,
        call_id: &CallId,
        tool: Option<&str>,
    ) -> Result<Option<Unfinished>, StoreError> {
        let is_it = |record: &ToolInvocationRecord| {
            record.tool_call_id == *call_id && tool.is_none_or(|tool| *record.name == *tool)
        };
        Ok(self.all_unfinished(|record| is_it(record)).await?.into_iter().next())
    }

    /// Returns the open entries of this run whose records are wanted.
    pub(super) async fn all_unfinished(
        &self,
        wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Vec<Unfinished>, StoreError> {
        let ours = |entry: &LedgerEntry| {
            entry.unseen().is_some_and(|record| {
                wanted(record) && owns(self, record.principal.as_deref(), record.tenant.as_deref())
            })
        };
        let scope = Some(self.identity().clone());
        let mut query = Query { scope, due: Some(Timestamp::MAX), ..Query::new(Space::Call) };
        let mut found = Vec::new();
        loop {
            let page = self.shared().store.list(&query).await?;
            let next = page.last().filter(|_| page.len() >= query.limit).map(|listed| listed.position);
            found.extend(page.into_iter().filter_map(|Listed { key, document, .. }| match document {
                Document::Call(entry) if ours(&entry) => Some(Unfinished { key, entry }),
                _ => None,
            }));
            let Some(next) = next else { return Ok(found) };
            query.after = next;
        }
    }

    /// Continues calls of this run whose process is gone and which the conversation does not have, or closes them: the
    /// model has read already that their outcome is not known. `waits` are the calls that it still has.
    pub(crate) async fn close_others(&self, waits: impl Fn(&CallId) -> bool) -> Result<(), StoreError> {
        for call in self.all_unfinished(|record| !waits(&record.tool_call_id)).await? {
            if self.is_abandoned(&call).await? {
                self.take_over(call).await?;
            }
        }
        Ok(())
    }

    /// Whether the process that began the call can no longer write, by the store's time.
    pub(super) async fn is_abandoned(&self, call: &Unfinished) -> Result<bool, StoreError> {
        let (lease, key) = (self.lease(), call.key.clone());
        let mut keys = self.keys();
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            Ok(ledger::is_abandoned(transaction, &key, lease.as_ref()))
        };
        self.shared().store.transact(keys, change).await
    }

    /// Closes the call as `outcome_unknown` if its process is gone. For a call that the gate does not take over: the
    /// policy refuses it now, or its arguments are not known.
    pub(super) async fn close_abandoned(&self, call: &Unfinished) -> Result<(), StoreError> {
        let (lease, key) = (self.lease(), call.key.clone());
        let mut keys = self.keys();
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            ledger::close_unseen(transaction, &key, lease.as_ref())
        };
        let closed = self.shared().store.transact(keys, change).await?;
        // The run of a graph that an older version entered has an id that is made with the key.
        self.digests().await;
        if let Some(left) = Forsaken::unseen(self, &call.key, &call.entry).filter(|_| closed) {
            left.close(&[]).await;
        }
        Ok(())
    }
}
