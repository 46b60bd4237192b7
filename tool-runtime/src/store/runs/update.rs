//! The write of a worker after a step of its run, and the time at which a released run becomes due.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::store::ledger::after;
use crate::store::runs::{RunLease, held, slots, write};
use crate::store::{Document, Key, StoreError, Transaction};
use crate::tool::Hash;

/// The write of a worker after a step of its run.
#[derive(Debug, Clone)]
pub(crate) struct RunUpdate {
    /// The conversation. `None` if it has not changed.
    pub(crate) document: Option<Arc<str>>,
    /// The result of the last step. `None` if it has not changed.
    pub(crate) state: Option<Arc<str>>,
    /// The version under which the run began. `None` if it has no version, or if the version has not changed.
    pub(crate) version: Option<Hash>,
    /// The key of the posted message that took effect in the document.
    pub(crate) taken: Option<Key>,
    pub(crate) failures: u32,
    pub(crate) next: AfterUpdate,
}

/// The owner of a run after an update.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AfterUpdate {
    /// The same worker stays the owner.
    Keep,
    /// No worker owns the run until it is due or a new event arrives. `news` is the number of events that the worker
    /// has seen.
    Release { due: Due, news: u64 },
}

/// The time at which a released run becomes due, by the store's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Due {
    /// The run becomes due only when an event arrives.
    Never,
    Now,
    /// The run becomes due after this time.
    In(Duration),
    /// The run becomes due at a time that a document of the store contains.
    At(Timestamp),
}

impl Due {
    fn by(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Now => Some(now),
            Self::In(duration) => Some(after(now, duration)),
            Self::At(time) => Some(time),
        }
    }
}

/// Writes an update of a run. A released run is removed from the slots of its tenant, if the transaction has locked
/// them.
pub(crate) fn save(transaction: &mut Transaction, lease: &RunLease, update: &RunUpdate) -> Result<(), StoreError> {
    held(transaction, lease)?;
    let now = transaction.now();
    if matches!(update.next, AfterUpdate::Release { .. }) {
        let run = held(transaction, lease)?.clone();
        slots::leave(transaction, &run)?;
    }
    let mut taken = None;
    if let Some(key) = &update.taken
        && let Some(Document::Post(post)) = transaction.get(key)
    {
        taken = Some(post.answers.clone());
        transaction.remove(key)?;
    }
    write(transaction, lease, |run| {
        if let Some(document) = &update.document {
            run.document = Arc::clone(document);
        }
        if let Some(state) = &update.state {
            run.state = Arc::clone(state);
        }
        // A run keeps the version under which it began.
        run.version = run.version.or(update.version);
        run.failures = update.failures;
        if let Some(answered) = &taken {
            run.posts = run.posts.saturating_sub(1);
            run.answers.retain(|question| !answered.contains(question));
        }
        match update.next {
            AfterUpdate::Keep => run.due = Some(now),
            AfterUpdate::Release { due, news } => {
                (run.holder, run.due) = (None, if run.news == news { due.by(now) } else { Some(now) });
            }
        }
    })
}
