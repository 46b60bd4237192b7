//! [`SavedConversation`]: a conversation as a document, with which it goes on in another process.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::agent::state::State;
use crate::agent::{Agent, Conversation};
use crate::runner::{RestoreError, RunOptions, RunSnapshot, ToolRunner};
use crate::store::StoreError;

/// The version of the document that this library writes, and the only one it reads.
const VERSION: u32 = 1;

/// A conversation as a document: history, results that wait for their siblings, and the run's snapshot. Keep it where
/// clients cannot change it, see [`RunSnapshot`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedConversation {
    #[serde(deserialize_with = "version")]
    version: u32,
    run: RunSnapshot,
    state: State,
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        _ => Err(serde::de::Error::custom("the conversation was saved by another version of the library")),
    }
}

impl fmt::Debug for SavedConversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedConversation").field("run", &self.run).finish_non_exhaustive()
    }
}

impl SavedConversation {
    /// Returns the snapshot of the run, with the calls that wait.
    #[must_use]
    pub const fn run(&self) -> &RunSnapshot {
        &self.run
    }
}

impl Conversation {
    /// The conversation as a document.
    ///
    /// # Errors
    /// The store failed.
    pub async fn save(&self) -> Result<SavedConversation, StoreError> {
        Ok(SavedConversation { version: VERSION, run: self.run.snapshot().await?, state: self.state.clone() })
    }
}

impl Agent {
    /// Goes on with a saved conversation, in this process or another.
    ///
    /// # Errors
    /// It belongs to another user or organisation than the options name, or the store failed.
    pub async fn restore(
        &self,
        runner: &ToolRunner,
        options: RunOptions,
        saved: SavedConversation,
    ) -> Result<Conversation, RestoreError> {
        let run = runner.restore(saved.run, options).await?;
        Ok(Conversation { agent: self.clone(), run, state: saved.state })
    }
}
