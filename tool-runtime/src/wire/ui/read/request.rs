//! [`ChatRequest`]: the request of a client.

use std::fmt;

use crate::call::{ClientAnswer, Question};
use crate::error::ParseError;
use crate::wire::history::Media;
use crate::wire::ui::read::ChatErrorKind;

/// A checked request of a chat UI. Apply the decisions and the answers first, then the text.
///
/// [`ChatReader`](crate::wire::ui::ChatReader) has an example.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The client's id of the chat; in AG-UI, the id of the thread.
    pub chat_id: String,
    /// The client's id of the run that it requests; `None` unless the client uses AG-UI. Pass it, with `chat_id`, to
    /// [`UiEncoder::for_run`](crate::wire::ui::UiEncoder::for_run).
    pub run_id: Option<String>,
    /// The id of the message that the response continues, for
    /// [`UiEncoder::resuming`](crate::wire::ui::UiEncoder::resuming); `None` if the response begins a new message, and
    /// always in AG-UI.
    pub message_id: Option<String>,
    /// The person's decisions, in the order of the calls: the question, whether the person approves the call, and the
    /// reason, if they gave one. If the body has no other content, this includes decisions about calls that have ended;
    /// [`Conversation::check`](crate::agent::Conversation::check) refuses and records them.
    pub decisions: Vec<(Question, bool, Option<String>)>,
    /// The client's results of calls that it executes, in the order of the calls.
    pub answers: Vec<ClientAnswer>,
    /// The user's text; `None` if the body has no new message with text.
    pub text: Option<String>,
    /// The files of the user's new message.
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

    /// Adds decisions about calls that have ended, but only if the request has no other content: the conversation then
    /// refuses and records them as a body that was sent twice. Together with other content, they only repeat earlier
    /// requests.
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
