//! [`StoredEffect`]: the calls of one effect.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, Cause, ToolInvocationRecord};
use crate::store::key::Key;
use crate::store::pending::PendingCall;
use crate::tool::Hash;

/// The calls of one effect whose outcome matters to the next call of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredEffect {
    /// The calls whose outcome is unknown and not settled, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<StoredUnknown>,
    /// The call that holds the effect key: it executes, or its effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Box<EffectHolder>>,
    /// How many seconds the result of an effect with a key is kept. `None` if it is kept forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<u64>,
    /// `once` names the effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_once: bool,
}

/// The call that holds the effect key: it executes, or its effect happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffectHolder {
    /// Its run.
    pub(crate) run_id: Arc<str>,
    /// Its id.
    pub(crate) call_id: CallId,
    /// Its idempotency key.
    pub(crate) key: Hash,
    /// Its record. `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<Box<ToolInvocationRecord>>,
    /// When the effect may happen again. `None` if it never may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
}

/// A call whose outcome is unknown, with the state that settles it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredUnknown {
    /// The call.
    pub(crate) call: UnknownCall,
    /// Its record. It is in the chain too, unless the call was left open.
    pub(crate) record: Box<ToolInvocationRecord>,
    /// The call as it began. `None` if its tool cannot reconcile it and no person approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waited: Option<Box<PendingCall>>,
}

/// A call whose outcome is unknown, as a later call of the same effect names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnknownCall {
    /// Its run.
    pub(crate) run_id: Arc<str>,
    /// Its id.
    pub(crate) call_id: CallId,
    /// Its idempotency key.
    pub(crate) key: Hash,
    /// When it was interrupted, or found to be.
    pub(crate) since: Timestamp,
    /// The interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// `once` names the effect: its calls have a key in common, but not all arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_once: bool,
    /// The outcome that became known after a waiting call had asked about this one. `None` while it is unknown, so
    /// always in the document of an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known: Option<KnownOutcome>,
}

impl UnknownCall {
    /// Returns the members that a question about a later call is made of. The idempotency key is not among them: its
    /// hash has no secret, so sensitive arguments could be guessed from the question.
    pub(crate) fn shown(&self) -> impl Serialize {
        (&self.run_id, &self.call_id, self.since, self.cause, self.is_once, self.known)
    }
}

/// The outcome of a call that was unknown before, as a waiting call of the same effect names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KnownOutcome {
    /// It took effect.
    TookEffect,
    /// It had no effect.
    DidNotHappen,
    /// It was settled, and its record was deleted since, or another store has it.
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
    /// Returns the time from which the document can be removed, or the epoch if an outcome is unsettled: then a listing
    /// by due time finds the unsettled ones without reading the keys that are kept.
    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        if self.unknown.is_empty() { self.over() } else { Some(Timestamp::UNIX_EPOCH) }
    }

    /// Returns the time from which the document has no meaning.
    pub(in crate::store) fn over(&self) -> Option<Timestamp> {
        self.held.as_ref().filter(|_| self.is_past())?.until
    }

    /// Whether the effect happened, and no outcome is unknown.
    fn is_past(&self) -> bool {
        self.unknown.is_empty() && self.held.as_ref().is_some_and(|held| held.record.is_some())
    }

    /// Whether the document has no meaning any more.
    pub(in crate::store) const fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.held.is_none()
    }
}
