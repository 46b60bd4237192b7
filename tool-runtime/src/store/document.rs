//! [`Document`]: what a store keeps, apart from records.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::ToolInvocationRecord;
use crate::store::accounts::StoredAccount;
use crate::store::anchors::Anchor;
use crate::store::digest_key::StoredDigestKey;
use crate::store::grants::Grant;
use crate::store::key::Key;
use crate::store::ledger::LedgerEntry;
use crate::store::pending::PendingCall;
use crate::store::posts::Post;
use crate::store::runs::StoredRun;
use crate::tool::Hash;

/// What a store keeps, apart from records. Stores keep it as the JSON that serde makes of it, in a place where clients cannot
/// change it: the frozen arguments of calls are in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Document {
    /// A call in the ledger.
    Call(Box<LedgerEntry>),
    /// A call that waits.
    Waiting(Box<Waiting>),
    /// A call that waited and was decided.
    Decided {
        /// When it would have expired. From then on nothing of it can run, and the document may be removed.
        until: Timestamp,
    },
    /// A run that workers share.
    Run(Box<StoredRun>),
    /// What somebody decided for calls that come later.
    Grant(Box<Grant>),
    /// What was posted to such a run.
    Post(Box<Post>),
    /// What a principal or a tenant has used in a window.
    Account(Box<StoredAccount>),
    /// An anchor over the chains of all runs.
    Anchor(Box<Anchor>),
    /// The last anchor, once more, as the end of the chain of anchors.
    LastAnchor(Box<Anchor>),
    /// The key for digests of arguments.
    DigestKey(StoredDigestKey),
}

/// A call that waits, with the record that it would have now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The call.
    pub call: PendingCall,
    /// Its record, open.
    pub record: ToolInvocationRecord,
    /// Its idempotency key, under which the ledger keeps how it ended. `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Hash>,
}

impl Waiting {
    /// Where the ledger keeps the call as it was suspended.
    pub(crate) fn ledger_key(&self) -> Option<Key> {
        self.idempotency_key.map(|key| Key::call(Arc::clone(&self.call.run_id), key))
    }
}

impl Document {
    /// The time from which somebody may have to look at the document. `None` if nobody ever does.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Call(entry) => entry.due(),
            Self::Waiting(waiting) => Some(waiting.call.expires_at),
            Self::Run(run) => run.due(),
            Self::Grant(_) | Self::Account(_) | Self::Decided { .. } => self.over(),
            // A post is not due: its run is.
            Self::Post(_) | Self::Anchor(_) | Self::LastAnchor(_) | Self::DigestKey(_) => None,
        }
    }

    /// From when on it means nothing, so that it may be removed. `None` if that never happens by itself.
    pub(super) fn over(&self) -> Option<Timestamp> {
        match self {
            Self::Account(account) => Some(account.until),
            Self::Grant(grant) => grant.expires_at,
            Self::Decided { until } => Some(*until),
            Self::Call(_)
            | Self::Waiting(_)
            | Self::Run(_)
            | Self::Post(_)
            | Self::Anchor(_)
            | Self::LastAnchor(_)
            | Self::DigestKey(_) => None,
        }
    }

    /// Whether it is only kept to answer a question about the past, so that a bounded store may drop it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Call(entry) => entry.is_finished(),
            Self::Anchor(_) => true,
            Self::Waiting(_)
            | Self::Decided { .. }
            | Self::Run(_)
            | Self::Grant(_)
            | Self::Account(_)
            | Self::LastAnchor(_)
            | Self::DigestKey(_)
            | Self::Post(_) => false,
        }
    }
}
