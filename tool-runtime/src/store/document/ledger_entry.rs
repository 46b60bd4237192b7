//! [`LedgerEntry`]: a call in the ledger.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{Outcome, ToolInvocationRecord};
use crate::policy::NoticeTerms;
use crate::store::key::Key;
use crate::store::pending::PendingCall;

/// A call in the ledger. It has begun, and may have ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LedgerEntry {
    /// The id of the attempt that owns the call. Empty if no attempt owns it.
    pub(crate) owner: Arc<str>,
    /// How many times the call was begun or taken over.
    pub(crate) epoch: u64,
    /// When the owner's lease ends.
    pub(crate) until: Timestamp,
    /// The epoch of the lease on the run when the call began. `None` if no process had such a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<u64>,
    /// Whether no other process continues the run after this process has died.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_process: bool,
    /// Whether the tool may reconcile or repeat the call, so that an abandoned call can stay open for a week.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) recoverable: bool,
    /// The call as it began, for a process that continues it. `None` once the call is finished, and if it was not
    /// approved and its tool can neither reconcile nor repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Box<PendingCall>>,
    /// For a graph (an agent or a script that runs as a tool), the id of the run in which the graph works. `None` for
    /// other tools, and once the call is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) graph: Option<Arc<str>>,
    /// The scope of the key of the call's effect. `None` if the call does not exclude other calls with the same effect,
    /// and once its outcome is known. Earlier versions also left it out once the outcome was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<Arc<str>>,
    /// The contents of the notice about an unknown outcome. `None` if no notice is sent, and once the call is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notices: Option<Arc<NoticeTerms>>,
    /// The record of the call, which is also in the chain. If an unknown outcome was settled, this record has the
    /// settled outcome. Until the call is finished, it is the record to write if the end of the call is lost.
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

    /// Whether the call has ended, and its outcome is unknown and not settled.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_finished() && self.record.outcome == Outcome::OutcomeUnknown
    }

    /// Whether no other process continues the run after this process has died.
    #[cfg(feature = "mcp-server")]
    pub(crate) const fn ends_with_process(&self) -> bool {
        self.ends_with_process
    }

    /// Returns the key of the call's effect, which the transaction that closes or settles the call locks.
    pub(crate) fn effect_key(&self) -> Option<Key> {
        self.effect.clone().map(Key::effect)
    }

    /// Returns the record to write if the end of the call is lost. `None` once it is finished.
    pub(crate) fn open_record(&self) -> Option<&ToolInvocationRecord> {
        (!self.is_finished()).then_some(&*self.record)
    }

    /// Whether the process that began the call can no longer write, because its lease has ended or another worker has
    /// taken the run.
    pub(in crate::store) fn is_abandoned(&self, now: Timestamp, worker: Option<u64>) -> bool {
        now >= self.until || self.worker.zip(worker).is_some_and(|(before, now)| before < now)
    }

    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        (!self.is_finished()).then_some(self.until)
    }
}
