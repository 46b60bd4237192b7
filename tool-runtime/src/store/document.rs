//! [`StoredDocument`]: a document as a store keeps it, opaque to the store. Only this file writes and reads its JSON.
//!
//! [`Document`] is the parsed document. `docs/src/database.md` has the rules for documents of older versions: an added
//! member is optional and is not written while it is unset. Any other change needs a new version of the database, with
//! a migration.

mod account;
mod anchor;
mod digest_key;
mod effect;
mod grant;
mod hold;
mod ledger_entry;
mod notice;
mod post;
mod run;
mod slots;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::ToolInvocationRecord;
use crate::policy::NoticeTerms;
use crate::store::error::StoreError;
use crate::store::key::Key;
use crate::store::pending::PendingCall;
use crate::tool::Hash;

pub(crate) use account::StoredAccount;
pub use anchor::Anchor;
pub(crate) use anchor::AnchoredHead;
pub(crate) use digest_key::StoredDigestKey;
pub(crate) use effect::{EffectHolder, KnownOutcome, StoredEffect, StoredUnknown, UnknownCall};
pub(crate) use grant::{Covered, GrantCaller, GrantOrigin};
pub use grant::{GrantScope, StoredGrant};
pub(crate) use hold::HoldScope;
pub use hold::LegalHold;
pub(crate) use ledger_entry::LedgerEntry;
#[cfg(any(test, feature = "http", feature = "testing"))]
pub(crate) use notice::NoticeAttempt;
pub use notice::StoredNotice;
pub(crate) use post::Post;
pub(crate) use run::Holder;
pub use run::StoredRun;
pub(crate) use slots::StoredSlots;

/// A document as a store keeps it: a key, the time from which it is due, and text that the store does not interpret.
///
/// The text contains the exact arguments of calls, so a store must keep it where clients cannot change it. `Debug`
/// shows only the key.
///
/// ```
/// use tool_runtime::store::{Key, StoredDocument};
///
/// let kept = r#"{"decided":{"until":"2026-01-01T00:00:00Z"}}"#;
/// let document = StoredDocument::from_json(Key::run("run-1"), kept)?;
/// assert_eq!(document.due(), Some("2026-01-01T00:00:00Z".parse()?));
/// assert_eq!(document.to_json()?, kept);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StoredDocument {
    /// The key of the document.
    pub key: Key,
    /// The position of the document among all documents of the store that listed it, for
    /// [`Query::after`](crate::store::Query::after). 0 if no store listed it.
    pub position: u64,
    pub(crate) document: Document,
}

/// The maximum length of a text that [`StoredDocument::split`] leaves in the JSON, in bytes.
const LONG: usize = 2048;

impl StoredDocument {
    pub(crate) const fn new(key: Key, document: Document) -> Self {
        Self { key, position: 0, document }
    }

    /// Reads a document from the text that [`to_json`](Self::to_json) or [`split`](Self::split) wrote.
    ///
    /// # Errors
    /// The text is not a document that this version of the library can read ([`StoreError::Corrupt`]), or it is a
    /// suspended call that a later version wrote ([`StoreError::Newer`]).
    pub fn from_json(key: Key, json: &str) -> Result<Self, StoreError> {
        match serde_json::from_str(json) {
            Ok(document) => Ok(Self::new(key, document)),
            Err(error) => Err(newer(json).unwrap_or_else(|| StoreError::Corrupt(Box::new(error)))),
        }
    }

    /// Adds the second text that [`split`](Self::split) returned.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Arc<str>>) -> Self {
        if let Document::Run(run) = &mut self.document {
            run.document = text.into();
        }
        self
    }

    /// Marks a document that the store read without its long text, because its key is a [`Key::run_head`]. Call it only
    /// if [`split`](Self::split) returned a second text for the document. If a change does not replace the text,
    /// [`keeps_text`](Self::keeps_text) is `true` for the changed document, and the store keeps the text that it has.
    #[must_use]
    pub fn without_text(mut self) -> Self {
        if let Document::Run(run) = &mut self.document {
            run.keeps_text = true;
        }
        self
    }

    /// Whether the stored long text still belongs to this document, because the store [left it out](Self::without_text)
    /// and no change replaced it.
    #[must_use]
    pub fn keeps_text(&self) -> bool {
        self.as_run().is_some_and(|run| run.keeps_text && run.document.is_empty())
    }

    /// Sets the position of the document in the list of a store.
    #[must_use]
    pub fn at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    /// Writes the whole document as one text.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a part of it cannot be written as JSON, or if the store
    /// [left out](Self::without_text) its text.
    pub fn to_json(&self) -> Result<String, StoreError> {
        if self.keeps_text() {
            return Err(StoreError::Corrupt("the document was read without its text".into()));
        }
        text(&self.document)
    }

    /// Writes the document as JSON. If the conversation of a run is longer than 2,048 bytes, the JSON omits it, and it
    /// is returned as a second text. Each step of a run changes only a small part of the second text, so a store can
    /// split it into parts and write only those that changed. For any other store, [`to_json`](Self::to_json) is
    /// enough.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a part of it cannot be written as JSON.
    pub fn split(&self) -> Result<(String, Option<Arc<str>>), StoreError> {
        match &self.document {
            Document::Run(run) if run.document.len() > LONG => {
                let short = StoredRun { document: "".into(), ..(**run).clone() };
                Ok((text(&Document::Run(Box::new(short)))?, Some(Arc::clone(&run.document))))
            }
            document => Ok((text(document)?, None)),
        }
    }

    /// Returns the time from which the document is due, so that a worker, a sweep or a notifier has to act on it.
    /// `None` if it is never due.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.document.due()
    }

    /// Returns the lane of a run that workers share. The runs of one tenant and one version are in one lane, in the
    /// order of their due times. Workers take lanes of different tenants in turn. The lane is a short text that is
    /// opaque to a store. `None` for other documents.
    #[must_use]
    pub fn lane(&self) -> Option<Arc<str>> {
        self.as_run().map(StoredRun::lane)
    }

    /// Returns when the lease on a run that workers share ends. `None` for a run without a lease, and for other
    /// documents.
    #[must_use]
    pub fn leased_until(&self) -> Option<Timestamp> {
        self.as_run()?.holder.as_ref().map(|holder| holder.until)
    }

    /// Returns the time from which the document is no longer needed, so that a bounded store may drop it. `None` if it
    /// does not expire.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.document.over()
    }

    /// Whether a full store may drop the document, oldest first: it is a call that ended, an anchor, or a notice, even
    /// one that was not sent yet.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.document.is_settled()
    }

    /// Returns the run, if this is the document of a run.
    #[must_use]
    pub fn as_run(&self) -> Option<&StoredRun> {
        if let Document::Run(run) = &self.document { Some(run) } else { None }
    }

    /// Returns the grant, if this is the document of a grant.
    #[must_use]
    pub fn as_grant(&self) -> Option<&StoredGrant> {
        if let Document::Grant(grant) = &self.document { Some(grant) } else { None }
    }
}

// The text contains arguments of calls and conversations, so `Debug` omits it.
impl fmt::Debug for StoredDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredDocument").field("key", &self.key).finish_non_exhaustive()
    }
}

fn text(document: &Document) -> Result<String, StoreError> {
    serde_json::to_string(document).map_err(|error| StoreError::Corrupt(Box::new(error)))
}

/// Returns [`StoreError::Newer`] for the unreadable text of a suspended call that a later version of this library
/// wrote. `None` for any other text.
fn newer(json: &str) -> Option<StoreError> {
    let document: serde_json::Value = serde_json::from_str(json).ok()?;
    let found = document.get("waiting")?.get("call")?.get("version")?.as_i64()?;
    let known = i64::from(PendingCall::VERSION);
    (found > known).then_some(StoreError::Newer { found, known })
}

/// A parsed document.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Document {
    /// A call in the ledger.
    Call(Box<LedgerEntry>),
    /// A suspended call.
    Waiting(Box<Waiting>),
    /// A mark that a suspended call was decided.
    Decided {
        /// When the call would have expired. From this time on, no copy of the call can run, and the mark may be
        /// removed.
        until: Timestamp,
    },
    /// A run that workers share.
    Run(Box<StoredRun>),
    /// A decision that applies to later calls.
    Grant(Box<StoredGrant>),
    /// A message that was posted to a shared run.
    Post(Box<Post>),
    /// The amounts that a principal or a tenant has used in a window.
    Account(Box<StoredAccount>),
    /// An anchor over the chains of all runs.
    Anchor(Box<Anchor>),
    /// A copy of the last anchor, which marks the end of the chain of anchors.
    LastAnchor(Box<Anchor>),
    /// The key for digests of arguments.
    DigestKey(StoredDigestKey),
    /// The calls of one effect.
    Effect(Box<StoredEffect>),
    /// A mark in the place of a run that was purged or erased. No call begins in such a run.
    Purged {
        /// When the run was purged or erased.
        at: Timestamp,
    },
    /// The legal holds on one subject.
    Holds(Vec<LegalHold>),
    /// A notice about a call.
    Notice(Box<StoredNotice>),
    /// The leases of workers on the runs of a tenant.
    Slots(StoredSlots),
}

/// A suspended call and its open record, which is not in the chain yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Waiting {
    /// The call.
    pub call: PendingCall,
    /// The open record of the call.
    pub record: ToolInvocationRecord,
    /// The idempotency key under which the ledger records the end of the call. `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Hash>,
    /// The contents of the notices about the call. `None` if no notices are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Arc<NoticeTerms>>,
}

impl Waiting {
    /// Returns the ledger key of the call as it was suspended.
    pub(crate) fn ledger_key(&self) -> Option<Key> {
        self.idempotency_key.map(|key| Key::call(Arc::clone(&self.call.run_id), key))
    }
}

impl Document {
    /// Returns the time from which the document is due. `None` if it is never due.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Call(entry) => entry.due(),
            Self::Waiting(waiting) => Some(waiting.call.expires_at),
            Self::Run(run) => run.due(),
            Self::Effect(effect) => effect.due(),
            Self::Notice(notice) => Some(notice.due()),
            Self::Grant(_) | Self::Account(_) | Self::Decided { .. } | Self::Slots(_) => self.over(),
            // A message is never due itself. Posting it makes its run due.
            Self::Post(_)
            | Self::Anchor(_)
            | Self::LastAnchor(_)
            | Self::DigestKey(_)
            | Self::Purged { .. }
            | Self::Holds(_) => None,
        }
    }

    /// Returns the time from which the document is no longer needed and may be removed. `None` if it does not expire.
    pub(super) fn over(&self) -> Option<Timestamp> {
        match self {
            Self::Account(account) => Some(account.until),
            Self::Grant(grant) => grant.expires_at.max(grant.on_hold),
            Self::Decided { until } => Some(*until),
            Self::Effect(effect) => effect.over(),
            Self::Notice(notice) => Some(notice.over()),
            Self::Slots(slots) => slots.over(),
            Self::Call(_)
            | Self::Waiting(_)
            | Self::Run(_)
            | Self::Post(_)
            | Self::Anchor(_)
            | Self::LastAnchor(_)
            | Self::DigestKey(_)
            | Self::Purged { .. }
            | Self::Holds(_) => None,
        }
    }

    /// Returns the document with the time at which a sweep found a legal hold on it, so that it expires later. `None`
    /// if a document of this kind does not expire or cannot be held.
    pub(super) fn on_hold(&self, now: Timestamp) -> Option<Self> {
        let mut kept = self.clone();
        match &mut kept {
            Self::Grant(grant) => grant.on_hold = Some(now),
            Self::Notice(notice) => notice.on_hold = Some(now),
            Self::Effect(effect) => effect.held.as_mut()?.on_hold = Some(now),
            _ => return None,
        }
        Some(kept)
    }

    /// Whether a full store may drop the document.
    fn is_settled(&self) -> bool {
        match self {
            Self::Call(entry) => entry.is_finished(),
            // A full store drops notices, so that it never refuses a call because of them.
            Self::Anchor(_) | Self::Notice(_) => true,
            // If an effect key were dropped, its effect could happen again.
            Self::Waiting(_)
            | Self::Decided { .. }
            | Self::Run(_)
            | Self::Grant(_)
            | Self::Account(_)
            | Self::LastAnchor(_)
            | Self::DigestKey(_)
            | Self::Effect(_)
            | Self::Purged { .. }
            | Self::Holds(_)
            | Self::Slots(_)
            | Self::Post(_) => false,
        }
    }
}
