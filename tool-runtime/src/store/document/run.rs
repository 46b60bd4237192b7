//! [`StoredRun`]: a run that workers share.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::Question;
use crate::store::{Key, lane};
use crate::tool::Hash;

/// A run that workers share, as a [`RunQueue`](crate::agent::RunQueue) stores it. The runs that an MCP server or an
/// engine for durable execution continues are stored in the same form.
///
/// [`RunQueue`](crate::agent::RunQueue) has an example.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredRun {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The principal that the run acts for. `None` if the run has no principal.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run. `None` if the run has no tenant.
    pub tenant: Option<Arc<str>>,
    /// The saved conversation. Empty if an engine continues the run and stores the conversation.
    pub(crate) document: Arc<str>,
    /// Whether the store left the conversation out. The stored conversation stays unless `document` replaces it.
    #[serde(skip)]
    pub(crate) keeps_text: bool,
    /// The result of the last step, as a stable code. Empty before the first step. `served` for a run that an MCP
    /// server continues.
    pub state: Arc<str>,
    /// When a worker should take the run. `None` if the run waits for a message.
    pub due: Option<Timestamp>,
    /// The owner of the lease on the run, and the end of the lease.
    pub(crate) holder: Option<Holder>,
    /// How many times the run was leased: by workers, applications and engines.
    pub(crate) epoch: u64,
    /// How many events of other processes, such as posted messages, the run has received.
    pub(crate) news: u64,
    /// How many posted messages the run has not received yet.
    pub(crate) posts: u32,
    /// The questions that unreceived messages answer. No other message may answer them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Question>,
    /// How many times in a row the run could not be continued.
    pub(crate) failures: u32,
    /// Whether the run lacks records since the store was restored from a backup. No worker takes it until a person
    /// releases it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) held_back: bool,
    /// When the run was last written. `None` if a version without retention wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<Timestamp>,
    /// The version of catalog, instructions and policy under which the run began, see
    /// [`Worker::leave_other_versions`](crate::agent::Worker::leave_other_versions). `None` before its first step, and
    /// for runs of earlier versions of this library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Hash>,
}

// The document contains the conversation, so `Debug` omits it.
impl std::fmt::Debug for StoredRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredRun").field("run_id", &self.run_id).field("due", &self.due).finish_non_exhaustive()
    }
}

/// The owner of a lease.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holder {
    pub(crate) owner: Arc<str>,
    pub(crate) until: Timestamp,
}

impl StoredRun {
    /// Creates a run without a lease.
    pub(crate) fn new(run_id: impl Into<Arc<str>>, document: impl Into<Arc<str>>) -> Self {
        let (run_id, document) = (run_id.into(), document.into());
        Self {
            run_id,
            principal: None,
            tenant: None,
            document,
            keeps_text: false,
            state: "".into(),
            due: None,
            holder: None,
            epoch: 0,
            news: 0,
            posts: 0,
            answers: Vec::new(),
            failures: 0,
            held_back: false,
            changed: None,
            version: None,
        }
    }

    /// Returns how many posted messages the run has not received yet.
    #[must_use]
    pub const fn posts(&self) -> u32 {
        self.posts
    }

    /// Whether a message that the run has not received yet answers this question, so that no other message may answer
    /// it.
    #[must_use]
    pub fn is_answered(&self, question: &Question) -> bool {
        self.answers.contains(question)
    }

    /// Whether the run lacks records since the store was restored from a backup. No worker takes it until
    /// [`release_run`](trait@crate::store::Store#method.release_run) is called.
    #[must_use]
    pub const fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Whether the run has a document, which the store read or left out.
    pub(crate) fn has_document(&self) -> bool {
        self.keeps_text || !self.document.is_empty()
    }

    /// Whether the run acts for this principal of this tenant. Two tenants can have runs with the same id.
    pub(crate) fn is_of(&self, principal: Option<&Arc<str>>, tenant: Option<&Arc<str>>) -> bool {
        (self.principal.as_ref(), self.tenant.as_ref()) == (principal, tenant)
    }

    /// Returns the key of the slots of the run's tenant, which count the leases of workers on its runs.
    pub(crate) fn slots(&self) -> Key {
        Key::slots(self.tenant.as_deref(), self.principal.as_deref())
    }

    /// Returns the lane of the run, see [`StoredDocument::lane`](crate::store::StoredDocument::lane).
    pub(in crate::store) fn lane(&self) -> Arc<str> {
        lane::lane(&self.slots(), self.version)
    }

    /// Returns when a worker may take the run: when it is due and no lease on it is running. The lease of an engine or
    /// a server never ends, so workers do not take its runs, even if a message is posted.
    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        let until = self.holder.as_ref().map_or(Timestamp::MIN, |holder| holder.until);
        self.due.filter(|_| !self.held_back && until < Timestamp::MAX).map(|due| due.max(until))
    }
}
