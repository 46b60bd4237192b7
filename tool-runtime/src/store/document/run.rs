//! [`StoredRun`]: a run that workers share.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::Question;
use crate::store::{Key, lane};
use crate::tool::Hash;

/// A run that workers share, as a [`RunQueue`](crate::agent::RunQueue) keeps it.
///
/// [`RunQueue`](crate::agent::RunQueue) has an example.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredRun {
    /// The run.
    pub run_id: Arc<str>,
    /// The principal that the run acts for; `None` if the run names none.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run; `None` if the run names none.
    pub tenant: Option<Arc<str>>,
    /// The saved conversation. Empty if an engine drives the run and keeps it.
    pub(crate) document: Arc<str>,
    /// The result of its last step, as a stable code; empty before the first.
    pub state: Arc<str>,
    /// When a worker should take it; `None` if the run waits for a post.
    pub due: Option<Timestamp>,
    /// The worker that has it.
    pub(crate) holder: Option<Holder>,
    /// How many times its lease was taken: by workers, applications and engines.
    pub(crate) epoch: u64,
    /// How many events from outside it has received.
    pub(crate) news: u64,
    /// How many posted messages are not taken yet.
    pub(crate) posts: u32,
    /// The questions that messages in its post answer; no other message may answer them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) answers: Vec<Question>,
    /// How many times in a row it could not be continued.
    pub(crate) failures: u32,
    /// The store was restored from a backup that lacks a part of the run: no worker takes it until a person releases
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) held_back: bool,
    /// When it was last written. `None` if a version before retention wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changed: Option<Timestamp>,
    /// The version of catalog, instructions and policy under which it began, see
    /// [`Worker::leave_other_versions`](crate::agent::Worker::leave_other_versions). `None` before its first step, and
    /// for runs of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Hash>,
}

// The document holds the conversation, so `Debug` leaves it out.
impl std::fmt::Debug for StoredRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredRun").field("run_id", &self.run_id).field("due", &self.due).finish_non_exhaustive()
    }
}

/// The worker that has a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holder {
    pub(crate) owner: Arc<str>,
    pub(crate) until: Timestamp,
}

impl StoredRun {
    /// Creates a run without a holder.
    pub(crate) fn new(run_id: impl Into<Arc<str>>, document: impl Into<Arc<str>>) -> Self {
        let (run_id, document) = (run_id.into(), document.into());
        Self {
            run_id,
            principal: None,
            tenant: None,
            document,
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

    /// Returns how many posted messages are not taken yet.
    #[must_use]
    pub const fn posts(&self) -> u32 {
        self.posts
    }

    /// Whether a message in its post answers this question, so that no other message may.
    #[must_use]
    pub fn is_answered(&self, question: &Question) -> bool {
        self.answers.contains(question)
    }

    /// Whether the store was restored from a backup that lacks records of the run. No worker takes it until
    /// [`release_run`](trait@crate::store::Store#method.release_run).
    #[must_use]
    pub const fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Whether it acts for this principal of this tenant. Runs of two tenants can have the same id.
    pub(crate) fn is_of(&self, principal: Option<&Arc<str>>, tenant: Option<&Arc<str>>) -> bool {
        (self.principal.as_ref(), self.tenant.as_ref()) == (principal, tenant)
    }

    /// Returns the key of the runs of its tenant that workers have.
    pub(crate) fn slots(&self) -> Key {
        Key::slots(self.tenant.as_deref(), self.principal.as_deref())
    }

    /// Returns its lane, which [`StoredDocument::lane`](crate::store::StoredDocument::lane) explains.
    pub(in crate::store) fn lane(&self) -> Arc<str> {
        lane::lane(&self.slots(), self.version)
    }

    /// Returns when a worker may take it: when it is due and no holder's lease is running. A run of an engine or a
    /// server, whose lease never ends, is not in the queue, whatever was posted to it.
    pub(in crate::store) fn due(&self) -> Option<Timestamp> {
        let until = self.holder.as_ref().map_or(Timestamp::MIN, |holder| holder.until);
        self.due.filter(|_| !self.held_back && until < Timestamp::MAX).map(|due| due.max(until))
    }
}
