//! [`LedgerEntry`]: a call in the ledger.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::ToolInvocationRecord;
use crate::policy::NoticeTerms;
use crate::store::key::Key;
use crate::store::pending::PendingCall;

/// A call in the ledger. It began; it has an end only once it is finished.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LedgerEntry {
    /// The attempt that runs it, in one process.
    pub(crate) owner: Arc<str>,
    /// How many times it was begun or taken over.
    pub(crate) epoch: u64,
    /// When the owner's lease ends.
    pub(crate) until: Timestamp,
    /// The epoch of the lease on the run when the call began. `None` if no process had such a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<u64>,
    /// No other process continues its run once this one is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_process: bool,
    /// The tool may reconcile or repeat the call, so only the gate closes it while its run can continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) recoverable: bool,
    /// The call as it began, while it is open, so that another process can continue it. `None` if it was not approved
    /// and its tool can neither reconcile nor repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Box<PendingCall>>,
    /// The id of the run that its graph works in, while it is open. `None` for any other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) graph: Option<Arc<str>>,
    /// The scope of its effect's key, while it is open. `None` if no other call of it has to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<Arc<str>>,
    /// The contents of the notice if its outcome is unknown, while it is open. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notices: Option<Arc<NoticeTerms>>,
    /// Its record, which is in the chain too; an unknown outcome that was settled has the settled one here. Until the
    /// call is finished, the record to write if its end is lost.
    pub(crate) record: Box<ToolInvocationRecord>,
}

impl LedgerEntry {
    /// Creates the entry of a call whose record is final.
    pub(in crate::store) const fn closed(
        owner: Arc<str>,
        epoch: u64,
        until: Timestamp,
        record: Box<ToolInvocationRecord>,
    ) -> Self {
        let (worker, waited, graph, effect, notices) = (None, None, None, None, None);
        let (ends_with_process, recoverable) = (false, false);
        Self { owner, epoch, until, worker, ends_with_process, recoverable, waited, graph, effect, notices, record }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.record.ended_at.is_some()
    }

    /// Whether no other process continues its run once this one is gone.
    #[cfg(feature = "mcp-server")]
    pub(crate) const fn ends_with_process(&self) -> bool {
        self.ends_with_process
    }

    /// Returns the key of its effect, which the transaction that closes it locks.
    pub(crate) fn effect_key(&self) -> Option<Key> {
        self.effect.clone().map(Key::effect)
    }

    /// Returns the record to write if the call's end is lost. `None` once it is finished.
    pub(crate) fn unseen(&self) -> Option<&ToolInvocationRecord> {
        (!self.is_finished()).then_some(&*self.record)
    }

    /// Whether the process that began it can no longer write: its lease has ended, or another worker has taken the run.
    pub(in crate::store) fn is_abandoned(&self, now: Timestamp, worker: Option<u64>) -> bool {
        now >= self.until || self.worker.zip(worker).is_some_and(|(before, now)| before < now)
    }

    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        (!self.is_finished()).then_some(self.until)
    }
}
