//! [`ChatRequest`]: the request of a client.

use std::fmt;

use crate::call::{CallId, Question};
use crate::wire::history::Media;
use crate::wire::ui::read::{ChatError, ChatErrorKind};

/// A request of a chat UI, read and checked. Take the answers first, and then the text, if there is one.
///
/// [`ChatReader`](crate::wire::ui::ChatReader) has an example.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The client's id of the chat; the thread of AG-UI.
    pub chat_id: String,
    /// The client's id of the run that it asks for; `None` unless it speaks AG-UI. With `chat_id` for
    /// [`UiEncoder::for_run`](crate::wire::ui::UiEncoder::for_run).
    pub run_id: Option<String>,
    /// The id of the message that the response continues, for
    /// [`UiEncoder::resuming`](crate::wire::ui::UiEncoder::resuming); `None` if it begins another message.
    pub message_id: Option<String>,
    /// The answers to calls that wait, in the order of the calls. A body that brings nothing else keeps its decisions on
    /// calls that have ended: [`Conversation::check`](crate::agent::Conversation::check) refuses and records them.
    pub answers: Vec<ChatAnswer>,
    /// The user's text; `None` if the body has no new message with text.
    pub text: Option<String>,
    /// The files that the user sent with the text.
    pub files: Vec<Media>,
}

impl ChatRequest {
    pub(super) const fn new(chat_id: String) -> Self {
        Self { chat_id, run_id: None, message_id: None, answers: Vec::new(), text: None, files: Vec::new() }
    }

    /// Takes decisions on calls that have ended, if the body brings nothing else: the conversation refuses and records
    /// a body that was sent twice. Next to other content they are the client's memory of earlier requests.
    pub(super) fn or_late(mut self, late: Vec<ChatAnswer>) -> Self {
        if self.text.is_none() && self.files.is_empty() && self.answers.is_empty() {
            self.answers = late;
        }
        self
    }

    pub(super) fn brings_something(self) -> Result<Self, ChatError> {
        if self.text.is_none() && self.files.is_empty() && self.answers.is_empty() {
            return Err(ChatError::new(ChatErrorKind::Empty, "/messages"));
        }
        Ok(self)
    }
}

/// One answer to a call that waits.
///
/// [`ChatReader`](crate::wire::ui::ChatReader) has an example.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatAnswer {
    /// A person decided.
    Decision {
        /// The question that they were shown.
        question: Question,
        /// Whether the call may run.
        approved: bool,
        /// The person's reason; `None` if they gave no reason.
        reason: Option<String>,
    },
    /// The client executed the call.
    Output {
        /// The id of the call.
        id: CallId,
        /// The result as JSON text.
        json: String,
    },
    /// The client could not execute the call.
    Failed {
        /// The id of the call.
        id: CallId,
    },
}

// Texts of people and clients stay out of logs.
impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("chat_id", &self.chat_id)
            .field("run_id", &self.run_id)
            .field("message_id", &self.message_id)
            .field("answers", &self.answers)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChatAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, id) = match self {
            Self::Decision { question, .. } => ("Decision", question.call_id()),
            Self::Output { id, .. } => ("Output", id),
            Self::Failed { id } => ("Failed", id),
        };
        f.debug_struct(name).field("id", id).finish_non_exhaustive()
    }
}
