//! [`SavedConversation`]: a conversation as a document that another process can continue.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::agent::turns::state::ConversationState;
use crate::agent::turns::{Turns, calls};
use crate::agent::{Agent, Conversation, ModelTurn, WaitingCall};
use crate::runner::{ResumeError, Run, RunOptions, RunSnapshot, ToolRunner};
use crate::store::StoreError;
use crate::tool::Hash;
use crate::wire::Message;

/// The only version of the document that this library writes and reads.
const VERSION: u32 = 1;

/// A conversation as a document: history, the calls of the last turn, summaries of the turns, and the run's snapshot.
/// Keep it where clients cannot change it, see [`RunSnapshot`].
///
/// ```
/// use tool_runtime::agent::{Agent, SavedConversation};
/// use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolPolicy, ToolRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let runner = ToolRunner::builder(ToolCatalog::builder().build()?, ToolPolicy::deny_all()).build()?;
/// let agent = Agent::new(ScriptedModel::new([ScriptedTurn::text("Hello."), ScriptedTurn::text("Bye.")]));
/// let mut conversation = agent.converse(runner.run(RunOptions::new().principal("ada")));
/// conversation.send("Hi!").await;
/// let document = serde_json::to_string(&conversation.save().await?)?;
///
/// // The next request, perhaps in another process.
/// let saved: SavedConversation = serde_json::from_str(&document)?;
/// let mut conversation = agent.restore(&runner, RunOptions::new().principal("ada"), saved).await?;
/// conversation.send("Bye!").await;
/// assert_eq!(conversation.history().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedConversation {
    #[serde(deserialize_with = "version")]
    version: u32,
    run: RunSnapshot,
    pub(in crate::agent) state: ConversationState,
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
    /// Returns the snapshot of the run.
    #[must_use]
    pub const fn run(&self) -> &RunSnapshot {
        &self.run
    }

    /// Returns the history, see [`Conversation::history`].
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.state.history()
    }

    /// Returns a summary of each model turn, in order.
    #[must_use]
    pub fn turns(&self) -> &[ModelTurn] {
        &self.state.turns
    }

    pub(super) const fn version(&self) -> Option<Hash> {
        self.state.version
    }

    /// Returns the calls that waited at the time of saving, in the order in which the model made them.
    pub fn waiting(&self) -> impl Iterator<Item = &WaitingCall> {
        self.state.waiting()
    }
}

impl Conversation {
    /// Returns the conversation as a document. After a dropped request, the document contains the results of the
    /// interrupted calls from their records, so that a process with another store reads them too.
    ///
    /// # Errors
    /// The store failed.
    pub async fn save(&self) -> Result<SavedConversation, StoreError> {
        let mut state = self.turns.state.clone();
        calls::look_up(&self.turns.run, &mut state).await;
        Ok(SavedConversation { version: VERSION, run: self.turns.run.snapshot().await?, state })
    }
}

impl Agent {
    /// Starts a conversation on a run.
    #[must_use]
    pub fn converse(&self, run: Run) -> Conversation {
        Conversation {
            turns: Turns { agent: self.clone(), run, state: ConversationState::default() },
            decided: Arc::default(),
        }
    }

    /// Continues a saved conversation, in this process or another. Takes the document by value or by reference; a
    /// reference allows a retry after an error.
    ///
    /// # Errors
    /// The document belongs to another principal, tenant or caller than the options name; its run has worked under more
    /// than 16 other policies, or sets of roles and attributes; or the store failed.
    pub async fn restore(
        &self,
        runner: &ToolRunner,
        options: RunOptions,
        saved: impl Borrow<SavedConversation>,
    ) -> Result<Conversation, ResumeError> {
        let SavedConversation { run, mut state, .. } = saved.borrow().clone();
        let run = runner.restore(run, options).await?;
        state.forget_calls();
        calls::look_for_waiting(&run, &mut state).await?;
        calls::look_for_queued(&run, &mut state).await;
        calls::ask_again(&run, &mut state).await?;
        Ok(Conversation { turns: Turns { agent: self.clone(), run, state }, decided: Arc::default() })
    }
}
