//! [`Autosave`]: saves a conversation while this process continues it.

use tool_runtime::agent::{Conversation, Input, LeasedRun};
use tool_runtime::store::{Key, StoreError};

use crate::exit::Failure;
use crate::saved::{Document, OpenDocument};

/// The place of a conversation: a document of the data folder, or a leased run of the store.
pub(crate) enum Autosave {
    File(OpenDocument),
    Run { leased: LeasedRun, id: String },
}

impl Autosave {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::File(kept) => &kept.id,
            Self::Run { id, .. } => id,
        }
    }

    /// Claims the conversation for a decision. A run of the store is already leased to this process.
    pub(super) fn claim(&mut self) -> Result<(), Failure> {
        match self {
            Self::File(kept) => kept.claim(),
            Self::Run { .. } => Ok(()),
        }
    }

    /// Releases a claim without a decision.
    pub(super) fn release(&mut self) {
        if let Self::File(kept) = self {
            kept.release();
        }
    }

    /// Saves the conversation. `taken` is a posted message that the conversation now contains; the same transaction
    /// removes it.
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

    /// Returns the oldest message that was posted to the run; `None` if there is none.
    pub(super) async fn post(&mut self) -> Result<Option<(Key, Input)>, Failure> {
        match self {
            Self::File(_) => Ok(None),
            Self::Run { leased, .. } => Ok(leased.post().await?),
        }
    }

    /// Releases a run of the store.
    pub(super) async fn hand_back(&self, conversation: &Conversation) -> Result<(), Failure> {
        let Self::Run { leased, .. } = self else { return Ok(()) };
        let due = conversation.waiting().filter_map(|call| call.expires_at).min();
        match leased.release(due).await {
            // `save` has already reported that another process holds the run.
            Ok(()) | Err(StoreError::Fenced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
