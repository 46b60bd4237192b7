//! Finds and closes calls that began, here or in another process, and have no recorded end.

use jiff::Timestamp;

use crate::call::{CallId, Outcome, ToolExecResult, ToolInvocationRecord};
use crate::runner::gate::draft::Draft;
use crate::runner::gate::ending::Stop;
use crate::runner::ledger::client::LedgerClient;
use crate::runner::ledger::look_up;
use crate::runner::ledger::orphans::Orphans;
use crate::runner::report::telemetry;
use crate::store::LedgerEntry;
use crate::store::pages::Search;
use crate::store::runs::RunLease;
use crate::store::{Document, DocumentKind, Key, Query, StoreError, StoredDocument, Transaction, ledger, transact};

/// The part of a transaction that closes an abandoned call or leaves it open. Returns `true` if the call was closed.
type EndAbandoned = fn(&mut Transaction, &Key, Option<&RunLease>) -> Result<bool, StoreError>;

/// An open entry of the ledger: a call that began and has no recorded end.
pub(in crate::runner) struct Unfinished {
    pub(in crate::runner) key: Key,
    pub(in crate::runner) entry: Box<LedgerEntry>,
}

impl LedgerClient<'_> {
    /// Returns the open entry of a call of this run; with `tool`, only of this tool.
    ///
    /// This closes nothing, because the gate may let the tool reconcile or repeat a call whose process is gone.
    pub(in crate::runner) async fn unfinished(
        self,
        call_id: &CallId,
        tool: Option<&str>,
    ) -> Result<Option<Unfinished>, StoreError> {
        let is_it = |record: &ToolInvocationRecord| {
            record.tool_call_id == *call_id && tool.is_none_or(|tool| *record.name == *tool)
        };
        Ok(self.all_unfinished(is_it).await?.into_iter().next())
    }

    /// Returns the open entries of this run whose records `wanted` accepts.
    pub(in crate::runner) async fn all_unfinished(
        self,
        wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Result<Vec<Unfinished>, StoreError> {
        let (mut search, mut found) = (self.begun_calls(), Vec::new());
        while let Some(page) = search.next(&self.0.shared().store).await? {
            found.extend(page.into_iter().filter_map(|listed| self.open_call(listed, &wanted)));
        }
        search.end()?;
        Ok(found)
    }

    /// Returns a search through the calls of this run in the ledger.
    pub(super) fn begun_calls(self) -> Search {
        let scope = Some(self.0.identity().clone());
        Search::of(Query { scope, due: Some(Timestamp::MAX), ..Query::new(DocumentKind::Call) })
    }

    /// Returns the open entry in a document, if it belongs to this run's party and `wanted` accepts its record.
    pub(super) fn open_call(
        self,
        StoredDocument { key, document, .. }: StoredDocument,
        wanted: impl Fn(&ToolInvocationRecord) -> bool,
    ) -> Option<Unfinished> {
        let Document::Call(entry) = document else { return None };
        let record = entry.open_record()?;
        let is_ours = wanted(record) && self.0.owns(record.principal.as_deref(), record.tenant.as_deref());
        is_ours.then_some(Unfinished { key, entry })
    }

    /// Whether the process that began the call can no longer write, by the store's time.
    pub(in crate::runner) async fn is_abandoned(self, call: &Unfinished) -> Result<bool, StoreError> {
        let (lease, key) = (self.0.lease(), call.key.clone());
        let mut keys = self.0.keys();
        keys.push(key.clone());
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            Ok(ledger::is_abandoned(transaction, &key, lease.as_ref()))
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// Closes the call as `outcome_unknown` if its process is gone.
    pub(in crate::runner) async fn close_abandoned(self, call: &Unfinished) -> Result<(), StoreError> {
        self.end_abandoned(call, ledger::close_abandoned).await
    }

    /// As [`close_abandoned`](Self::close_abandoned), for a call that this process cannot continue, because its policy
    /// or its definition of the tool differs. If the tool can reconcile or repeat the call, the call stays open for a
    /// week, so that another process can continue it.
    pub(in crate::runner) async fn leave_abandoned(self, call: &Unfinished) -> Result<(), StoreError> {
        self.end_abandoned(call, ledger::leave_or_close).await
    }

    /// As [`close_abandoned`](Self::close_abandoned), for a call whose takeover ended with `stop`, which is reported to
    /// operators. If a later attempt can succeed, because a server or a broker failed or this process stops, the call
    /// stays open as for [`leave_abandoned`](Self::leave_abandoned).
    pub(in crate::runner) async fn give_up(
        self,
        call: &Unfinished,
        draft: &Draft,
        stop: &Stop,
    ) -> Result<(), StoreError> {
        telemetry::contained(self.0, draft, stop);
        let is_passing = matches!(stop.outcome, Outcome::ConnectionFailed | Outcome::Cancelled);
        self.end_abandoned(call, if is_passing { ledger::leave_or_close } else { ledger::close_abandoned }).await
    }

    /// Closes the call, or leaves it open, in one transaction with the document of its effect. Returns whether it was
    /// closed.
    pub(super) async fn end(self, call: &Unfinished, end: EndAbandoned) -> Result<bool, StoreError> {
        let (lease, key) = (self.0.lease(), call.key.clone());
        let mut keys = self.0.keys();
        keys.extend([key.clone()].into_iter().chain(call.entry.effect_key()));
        let change = move |transaction: &mut Transaction| {
            ledger::check(transaction, lease.as_ref())?;
            end(transaction, &key, lease.as_ref())
        };
        transact(&self.0.shared().store, keys, change).await
    }

    /// As [`end`](Self::end), but if it closes the call of a graph, also closes the open calls of the graph.
    async fn end_abandoned(self, call: &Unfinished, end: EndAbandoned) -> Result<(), StoreError> {
        let closed = self.end(call, end).await?;
        // An entry of an older version has no id of the graph's run, so the id is derived with the key.
        self.0.digests().await;
        if let Some(left) = Orphans::of_closed(self.0, &call.key, &call.entry).filter(|_| closed) {
            left.close(&[]).await;
        }
        Ok(())
    }

    /// Closes the call of this run under a key if its process is gone, without reconciling it. Returns its result;
    /// `None` if it still runs.
    pub(in crate::runner) async fn close_begun(
        self,
        call_id: &CallId,
        key: &Key,
    ) -> Result<Option<ToolExecResult>, StoreError> {
        let open = self.all_unfinished(|record| record.tool_call_id == *call_id).await?;
        if let Some(call) = open.into_iter().find(|call| call.key == *key) {
            self.close_abandoned(&call).await?;
        }
        self.ended_under(key).await
    }

    /// Returns the result in the ledger of a call that ended. `None` if the ledger contains no end.
    pub(in crate::runner) async fn ended_under(self, key: &Key) -> Result<Option<ToolExecResult>, StoreError> {
        let (key, mut keys) = (key.clone(), self.0.keys());
        keys.push(key.clone());
        let found = move |transaction: &mut Transaction| {
            let entry = ledger::begun(transaction, &key).filter(|entry| entry.is_finished());
            Ok(entry.map(|entry| entry.record.clone()))
        };
        let ended = transact(&self.0.shared().store, keys, found).await?;
        Ok(ended.map(|record| look_up::adopted(self.0, *record)))
    }
}
