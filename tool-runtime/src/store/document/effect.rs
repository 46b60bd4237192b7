//! [`StoredEffect`]: the calls of one effect.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, Cause, ToolInvocationRecord};
use crate::store::key::Key;
use crate::store::pending::PendingCall;
use crate::tool::Hash;

/// The calls on which the next call of the same effect depends.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredEffect {
    /// The calls whose outcome is unknown and not settled, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<StoredUnknown>,
    /// The call that holds the effect key: it is running, or it took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Box<EffectHolder>>,
    /// How many seconds the effect key keeps the result of its call. `None` if it keeps the result forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<u64>,
    /// Whether the effect has an effect key (`once`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_once: bool,
}

/// The call that holds the effect key: it is running, or it took effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectHolder {
    /// The id of the call's run.
    pub(crate) run_id: Arc<str>,
    /// The id of the call.
    pub(crate) call_id: CallId,
    /// The idempotency key of the call.
    pub(crate) key: Hash,
    /// The record of the call. `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<Box<ToolInvocationRecord>>,
    /// When the effect may happen again. `None` if it may never happen again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    /// When a sweep last found the effect key expired but under a legal hold, so that it stays for another week. `None`
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_hold: Option<Timestamp>,
}

impl EffectHolder {
    /// Returns the holder for a call that begins.
    pub(crate) const fn new(run_id: Arc<str>, call_id: CallId, key: Hash) -> Self {
        Self { run_id, call_id, key, record: None, until: None, on_hold: None }
    }
}

/// A call of unknown outcome, with the data that a settlement needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredUnknown {
    /// The call.
    pub(crate) call: UnknownCall,
    /// The record of the call. It is also in the chain, unless the call was left open so that another process can
    /// continue it.
    pub(crate) record: Box<ToolInvocationRecord>,
    /// The call as it began. `None` if its tool cannot reconcile it and no person approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Box<PendingCall>>,
}

/// A call of unknown outcome, as a later call of the same effect names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnknownCall {
    /// The id of the call's run.
    pub(crate) run_id: Arc<str>,
    /// The id of the call.
    pub(crate) call_id: CallId,
    /// The idempotency key of the call.
    pub(crate) key: Hash,
    /// When the call was interrupted, or when the interruption was detected.
    pub(crate) since: Timestamp,
    /// The cause of the interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// Whether the effect has an effect key (`once`). Its calls then share the key, but possibly not all arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_once: bool,
    /// The outcome, if it became known after the question of a later call had named this call. `None` while it is
    /// unknown, so always `None` in the document of an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known: Option<KnownOutcome>,
}

impl UnknownCall {
    /// Returns the members that a question about a later call contains. The idempotency key is left out, because it is
    /// a hash without a secret, from which sensitive arguments could be guessed.
    pub(crate) fn shown(&self) -> impl Serialize {
        (&self.run_id, &self.call_id, self.since, self.cause, self.is_once, self.known)
    }
}

/// The outcome of a call that was unknown before, as a waiting call of the same effect names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KnownOutcome {
    /// The call took effect.
    TookEffect,
    /// The call had no effect.
    DidNotHappen,
    /// The call was settled. Its record was deleted later, or is in another store.
    Deleted,
}

impl UnknownCall {
    /// Returns the key of the call in the ledger.
    pub(crate) fn ledger_key(&self) -> Key {
        Key::call(Arc::clone(&self.run_id), self.key)
    }
}

impl EffectHolder {
    /// Returns the key of the call in the ledger.
    pub(crate) fn ledger_key(&self) -> Key {
        Key::call(Arc::clone(&self.run_id), self.key)
    }
}

impl StoredEffect {
    /// Returns the time from which the document can be removed. If an outcome is unsettled, returns the Unix epoch, so
    /// that a query by due time finds unsettled outcomes without reading the other effect keys.
    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        if self.unknown.is_empty() { self.over() } else { Some(Timestamp::UNIX_EPOCH) }
    }

    /// Returns the time from which the document is no longer needed.
    pub(in crate::store) fn over(&self) -> Option<Timestamp> {
        let held = self.held.as_ref().filter(|_| self.is_past())?;
        held.until.max(held.on_hold)
    }

    /// Whether the effect happened and no outcome is unknown.
    fn is_past(&self) -> bool {
        self.unknown.is_empty() && self.held.as_ref().is_some_and(|held| held.record.is_some())
    }

    /// Whether the document is no longer needed.
    pub(in crate::store) const fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.held.is_none()
    }
}
