//! [`ChatRequest`]: the request of a client.

use std::fmt;

use crate::call::{ClientAnswer, Question};
use crate::error::ParseError;
use crate::wire::history::Media;
use crate::wire::ui::read::ChatErrorKind;

/// A request of a chat UI, read and checked. Take the decisions and answers first, and then the text, if there is one.
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
    /// The person's decisions, in the order of the calls: each with the question that they were shown, whether the call
    /// may run, and the reason, if they gave one. A body that brings nothing else keeps its decisions on calls that
    /// have ended: [`Conversation::check`](crate::agent::Conversation::check) refuses and records them.
    pub decisions: Vec<(Question, bool, Option<String>)>,
    /// The client's answers to calls that it executes, in the order of the calls.
    pub answers: Vec<ClientAnswer>,
    /// The user's text; `None` if the body has no new message with text.
    pub text: Option<String>,
    /// The files that the user sent with the text.
    pub files: Vec<Media>,
}

impl ChatRequest {
    pub(super) const fn new(chat_id: String) -> Self {
        Self {
            chat_id,
            run_id: None,
            message_id: None,
            decisions: Vec::new(),
            answers: Vec::new(),
            text: None,
            files: Vec::new(),
        }
    }

    /// Takes decisions on calls that have ended, if the body brings nothing else: the conversation refuses and records
    /// a body that was sent twice. Next to other content they are the client's memory of earlier requests.
    pub(super) fn or_late(mut self, late: Vec<(Question, bool, Option<String>)>) -> Self {
        if self.is_empty() {
            self.decisions = late;
        }
        self
    }

    pub(super) fn brings_something(self) -> Result<Self, ParseError> {
        if self.is_empty() {
            return Err(ChatErrorKind::Empty.at("/messages"));
        }
        Ok(self)
    }

    fn is_empty(&self) -> bool {
        self.text.is_none() && self.files.is_empty() && self.decisions.is_empty() && self.answers.is_empty()
    }
}

// Texts of people and clients stay out of logs.
impl fmt::Debug for ChatRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decisions: Vec<_> = self.decisions.iter().map(|(question, approved, _)| (question, approved)).collect();
        f.debug_struct("ChatRequest")
            .field("chat_id", &self.chat_id)
            .field("run_id", &self.run_id)
            .field("message_id", &self.message_id)
            .field("decisions", &decisions)
            .field("answers", &self.answers)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}
