//! [`Input`]: the content of one request to a conversation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::typed::Typed;
use crate::call::{CallId, ClientAnswer, Decider, Question};
use crate::error::Problem;
use crate::runner::{ApprovalDecision, By};
use crate::wire::RequestSettings;
use crate::wire::history::{Content, Media};
use crate::wire::ui::ChatRequest;

/// The content of one request to a conversation: decisions, answers of the client and a message of the user, in any
/// combination. [`Conversation::receive`](crate::agent::Conversation::receive) refuses the whole input if one of its
/// ids does not match a waiting call.
///
/// ```
/// use tool_runtime::agent::Input;
/// use tool_runtime::call::{ClientAnswer, Decider, Question};
/// use tool_runtime::runner::ApprovalDecision;
///
/// # let sent = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.call_1";
/// // The question that the person was shown, as it was sent to their browser.
/// let question: Question = sent.parse()?;
/// let input = Input::new()
///     .decide(&question, ApprovalDecision::Approve, &Decider::new("grace").tenant("acme"))
///     .answer(ClientAnswer::value("call_2", r#"{"line":7}"#));
/// # let _ = input;
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct Input {
    pub(super) text: Option<String>,
    pub(super) media: Vec<Media>,
    pub(super) settings: RequestSettings,
    pub(super) decisions: Vec<(Question, ApprovalDecision, Decider)>,
    pub(super) expired: Vec<Question>,
    pub(super) answers: Vec<ClientAnswer>,
    /// The required type of the answer to the message.
    pub(super) typed: Option<Typed>,
    /// Whether the store delivers the input, perhaps again after it was carried out.
    #[serde(skip)]
    pub(super) delivered: bool,
}

/// A message of the user.
impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

/// A message of the user.
impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

impl Input {
    /// Creates an empty request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the message of the user. The message abandons calls that still wait after the decisions and answers. An
    /// approval whose call needs more approvals is therefore refused together with the message.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Sets the JSON Schema of the answer to the message; it has to describe an object. An answer that does not match
    /// is returned to the model once, with the problems. [`Conversation::ask`](crate::agent::Conversation::ask) derives
    /// the schema from a type.
    ///
    /// # Errors
    /// The schema cannot be used. Contains its problems.
    pub fn answer_schema(mut self, schema: &str) -> Result<Self, Vec<Problem>> {
        self.typed = Some(Typed::fitting(schema)?);
        Ok(self)
    }

    /// Adds an image, audio or a file to the message of the user. Files come before the text.
    pub fn media(mut self, media: Media) -> Self {
        self.media.push(media);
        self
    }

    /// Returns the user's text and files; empty if there is no message.
    pub(super) fn content(text: Option<String>, media: Vec<Media>) -> Vec<Content> {
        media.into_iter().map(Content::Media).chain(text.map(Content::Text)).collect()
    }

    /// Sets the settings of the turns that answer the message. Each setting overrides the agent's, until the next
    /// message. Without a message they have no effect.
    pub fn settings(mut self, settings: RequestSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Creates the input from a chat UI's post. The model reads the reason of a denial.
    ///
    /// `decider` is the author of the post, as the application authenticated them, and makes every decision in it. If
    /// the decider is the principal of the run, the policy has to set `own_calls = true`.
    pub fn posted(request: ChatRequest, decider: &Decider) -> Self {
        let ChatRequest { text, files: media, decisions, answers, .. } = request;
        decisions.into_iter().fold(
            Self { text, media, answers, ..Self::new() },
            |input, (question, approved, reason)| {
                let decision = if approved { ApprovalDecision::Approve } else { ApprovalDecision::Deny(reason) };
                input.decide(&question, decision, decider)
            },
        )
    }

    /// Adds a person's decision: the answer to the question that they were shown.
    pub fn decide(mut self, question: &Question, decision: ApprovalDecision, decider: &Decider) -> Self {
        self.decisions.push((question.clone(), decision, decider.clone()));
        self
    }

    /// Returns the questions of the decisions and expiries. An expiry has neither a decision nor a decider.
    pub(super) fn brought(&self) -> impl Iterator<Item = (&Question, By<'_>)> {
        let decided = self.decisions.iter();
        let decided = decided.map(|(question, decision, decider)| (question, (Some(decision), Some(decider))));
        decided.chain(self.expired.iter().map(|question| (question, (None, None))))
    }

    /// As delivered by the store, which delivers an input again if the process ends before it saves.
    pub(super) fn delivered(self) -> Self {
        Self { delivered: true, ..self }
    }

    /// Removes the decision on a question.
    pub(super) fn without(&mut self, question: &Question) {
        self.decisions.retain(|(decided, ..)| decided != question);
    }

    /// Whether the input has a message of the user, which abandons the calls that still wait.
    pub(super) const fn has_message(&self) -> bool {
        self.text.is_some() || !self.media.is_empty()
    }

    /// Whether the input has no message, decision, expiry or answer.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_message() && self.decisions.is_empty() && self.expired.is_empty() && self.answers.is_empty()
    }

    /// Returns the ids of the calls that the client answers.
    pub(super) fn answered(&self) -> impl Iterator<Item = &CallId> {
        self.answers.iter().map(ClientAnswer::id)
    }

    /// Returns only the decisions.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn into_decisions(self) -> Vec<(Question, ApprovalDecision, Decider)> {
        self.decisions
    }

    /// Adds the expiry of a call that waits for a person or for its client. A client's call with effects ends as
    /// `outcome_unknown`, because the client may have executed it.
    pub fn expire(mut self, question: &Question) -> Self {
        self.expired.push(question.clone());
        self
    }

    /// Adds the client's answer to a call that waits for it.
    pub fn answer(mut self, answer: ClientAnswer) -> Self {
        self.answers.push(answer);
        self
    }
}

// Text that users wrote stays out of logs.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("text", &self.text.is_some())
            .field("media", &self.media.len())
            .field("decisions", &self.decisions.len())
            .field("answers", &self.answers.len())
            .finish_non_exhaustive()
    }
}
