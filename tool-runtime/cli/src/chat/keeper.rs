//! [`Keeper`]: where a conversation is kept while this process continues it.

use tool_runtime::agent::{Conversation, Incoming, LeasedRun};
use tool_runtime::store::{Key, StoreError};

use crate::exit::Failure;
use crate::saved::{Document, Kept};

/// A document of the data folder, or a run of the store under a lease.
pub(crate) enum Keeper {
    File(Kept),
    Run { leased: LeasedRun, id: String },
}

impl Keeper {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::File(kept) => &kept.id,
            Self::Run { id, .. } => id,
        }
    }

    /// Claims the conversation for a decision. A run of the store is this process's already.
    pub(super) fn claim(&mut self) -> Result<(), Failure> {
        match self {
            Self::File(kept) => kept.claim(),
            Self::Run { .. } => Ok(()),
        }
    }

    /// Releases a claim that was not used.
    pub(super) fn release(&mut self) {
        if let Self::File(kept) = self {
            kept.release();
        }
    }

    /// Keeps the conversation, and what of its post has its effect in it.
    pub(super) async fn save(
        &mut self,
        conversation: &Conversation,
        state: &str,
        taken: Option<Key>,
    ) -> Result<(), Failure> {
        let saved = conversation.save().await?;
        match self {
            Self::File(kept) => kept.save(Document::Chat(Box::new(saved))),
            Self::Run { leased, .. } => Ok(leased.save(&saved, state, taken).await?),
        }
    }

    /// Returns the oldest of what was posted to the run. `None` if there is none.
    pub(super) async fn post(&mut self) -> Result<Option<(Key, Incoming)>, Failure> {
        match self {
            Self::File(_) => Ok(None),
            Self::Run { leased, .. } => Ok(leased.post().await?),
        }
    }

    /// Hands a run of the store back.
    pub(super) async fn hand_back(&self, conversation: &Conversation, state: &str) -> Result<(), Failure> {
        let Self::Run { leased, .. } = self else { return Ok(()) };
        let due = conversation.waiting().filter_map(|call| call.expires_at).min();
        match leased.release(state, due).await {
            // It was said already that somebody else has it.
            Ok(()) | Err(StoreError::Fenced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
