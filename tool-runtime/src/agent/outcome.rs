//! [`TurnOutcome`]: the end of a request to a conversation.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::ModelError;
use crate::call::{
    ArgumentChange, CallId, Decider, JsonText, NamedArgument, Question, SafeError, Suspension, Violation,
};
use crate::policy::BudgetExceeded;
use crate::runner::{ResumeError, SEPARATOR};
use crate::wire::{FinishReason, WireError};

/// The end of a request to a conversation, after any number of turns of the model. In each case
/// [`Conversation::history`](crate::agent::Conversation::history) is complete: a call without a result has a
/// placeholder as its result.
///
/// `Debug` prints the number of bytes in place of the model's text, as in `Answered { bytes: 6, .. }`.
///
/// ```
/// use tool_runtime::agent::TurnOutcome;
///
/// fn describe(ended: &TurnOutcome) -> String {
///     match ended {
///         TurnOutcome::Answered { text } => text.clone(),
///         TurnOutcome::Waiting { calls } => format!("{} calls wait for a person or a client", calls.len()),
///         TurnOutcome::Stopped { reason, .. } => format!("stopped: {reason}"),
///         _ => String::new(),
///     }
/// }
/// let ended = TurnOutcome::Answered { text: "Hello.".to_owned() };
/// assert_eq!(describe(&ended), "Hello.");
/// assert_eq!(format!("{ended:?}"), "Answered { bytes: 6, .. }");
/// ```
#[non_exhaustive]
pub enum TurnOutcome {
    /// The model answered.
    Answered {
        /// The text of the answer.
        text: String,
    },
    /// Calls wait for the client or for a person. The results of the other calls are in the history.
    Waiting {
        /// The calls that wait, in the order of the model.
        calls: Vec<WaitingCall>,
    },
    /// The request ended without an answer.
    Stopped {
        /// The reason.
        reason: StopReason,
        /// For [`StopReason::Incomplete`] and [`StopReason::InvalidAnswer`], the last, possibly incomplete, text of the
        /// model; for a refusal, the text of the refusal. For [`StopReason::AskUser`], the request for clarification to
        /// the user, which is in the history too. Empty for every other reason.
        text: String,
    },
}

// Text that the model wrote stays out of logs.
impl fmt::Debug for TurnOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { text } => f.debug_struct("Answered").field("bytes", &text.len()).finish_non_exhaustive(),
            Self::Waiting { calls } => f.debug_struct("Waiting").field("calls", calls).finish(),
            Self::Stopped { reason, text } => {
                f.debug_struct("Stopped").field("reason", reason).field("bytes", &text.len()).finish_non_exhaustive()
            }
        }
    }
}

impl TurnOutcome {
    /// Returns the stable code that the `done` event carries.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Waiting { calls } => Self::waiting_code(calls),
            Self::Stopped { reason, .. } => reason.code(),
        }
    }

    /// Returns `client_required` if any call waits for the client, even if others wait for a person.
    pub(super) fn waiting_code(calls: &[WaitingCall]) -> &'static str {
        let client = calls.iter().any(|call| call.suspension == Suspension::Client);
        if client { "client_required" } else { "approval_required" }
    }
}

/// A call that waits for a person or for the client, with the details for the decision.
///
/// [`Conversation`](crate::agent::Conversation) has an example.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingCall {
    /// The id of the call.
    pub id: CallId,
    /// The question that the call asks: its call id, and a digest of the details that the decider is shown. A decision
    /// has to name it.
    pub question: Question,
    /// The name of the tool that the model called.
    pub name: String,
    /// Whether the call waits for a person or a client.
    pub suspension: Suspension,
    /// For the call of a graph, the path to the inner call that waits, such as `researcher > notes__delete`; arguments
    /// and rule are those of the inner call. `None` for every other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The payload that the client executes, prepared by the tool. `None` for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<JsonText>,
    /// The arguments, with sensitive values masked. `None` if the store could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_arguments: Option<JsonText>,
    /// The tool's summary sentence, filled in with the shown arguments. `None` if the tool has no summary, or if the
    /// store could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The application's names for ids in the arguments, such as the title of a note.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NamedArgument>,
    /// The differences between the arguments that the model wrote and those that the tool gets: defaults, trimmed ids,
    /// repairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The labels that the run had when the call began to wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Arc<str>>,
    /// The rule of the policy that requires the approval. `None` for a call that waits for a client, or if the store
    /// could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How many different deciders have to approve the call: 1, unless the policy requires more.
    #[serde(default = "crate::call::one_decider")]
    pub required: u32,
    /// The deciders who have approved the call so far, if it needs several approvals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Decider>,
    /// The time at which the call expires. `None` if the store could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The reason why the last decision or answer did not fit, so that it can be corrected. `None` if none was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<SafeError>,
}

impl WaitingCall {
    pub(super) fn new(question: Question, name: String, suspension: Suspension, payload: Option<JsonText>) -> Self {
        Self {
            id: question.call_id().clone(),
            question,
            name,
            suspension,
            path: None,
            payload,
            shown_arguments: None,
            summary: None,
            names: Vec::new(),
            changes: Vec::new(),
            labels: Vec::new(),
            rule: None,
            required: 1,
            approvals: Vec::new(),
            expires_at: None,
            refused: None,
        }
    }

    /// Returns the tool of the call that a decision decides: for a graph, the tool of the inner call.
    pub(super) fn decided_tool(&self) -> &str {
        self.path.as_deref().and_then(|path| path.rsplit(SEPARATOR).next()).unwrap_or(&self.name)
    }
}

// Arguments and payloads stay out of logs.
impl fmt::Debug for WaitingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("suspension", &self.suspension)
            .field("path", &self.path)
            .field("rule", &self.rule)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The reason why a request ended without an answer.
///
/// [`TurnOutcome`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub enum StopReason {
    /// The model needed more turns than the agent allows.
    TurnLimit,
    /// A budget of the run is used up.
    Budget(BudgetExceeded),
    /// The model called a tool with the same mistake in its arguments in three turns, so the user has to help. Turns
    /// without a call of the tool do not count. A valid call of the tool, or a turn with only other mistakes, resets
    /// the count.
    AskUser,
    /// The model ended its turn without text and without a call.
    EmptyAnswer,
    /// The model gave no answer.
    Model(ModelError),
    /// The answer broke off, reached the output limit, was filtered or is a refusal, or the provider paused the turn
    /// without a result.
    Incomplete {
        /// How the answer ended.
        finish: FinishReason,
        /// The error that interrupted the answer.
        error: Option<WireError>,
    },
    /// The answer does not match the requested schema after one correction, or the requested type refuses it.
    InvalidAnswer(Vec<Violation>),
    /// The store failed, or a waiting call could not be finished. The waiting calls still wait, and the model was not
    /// asked again.
    Unsettled(ResumeError),
    /// The run was cancelled.
    Cancelled,
}

impl StopReason {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TurnLimit => "turn_limit",
            Self::Budget(exceeded) => exceeded.code(),
            Self::AskUser => "ask_user",
            Self::EmptyAnswer => "empty_answer",
            Self::InvalidAnswer(_) => "invalid_answer",
            Self::Unsettled(error) => error.code(),
            Self::Model(error) => error.code(),
            Self::Incomplete { finish, .. } => match finish {
                FinishReason::Length => "length",
                FinishReason::ContentFilter => "content_filter",
                FinishReason::Refusal => "refusal",
                FinishReason::Truncated => "truncated",
                FinishReason::Pause => "pause",
                FinishReason::Error | FinishReason::ToolCalls | FinishReason::Stop => "model_error",
            },
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnLimit => f.write_str("the limit of turns was reached before the model answered"),
            Self::Budget(exceeded) => exceeded.fmt(f),
            Self::AskUser => {
                f.write_str("the model made the same mistake in a tool's arguments three times; rephrase the request")
            }
            Self::EmptyAnswer => f.write_str("the model gave an empty answer"),
            Self::InvalidAnswer(violations) => {
                f.write_str("the answer does not match the requested schema")?;
                match violations.first() {
                    Some(first) if first.pointer.is_empty() => write!(f, ": expected {}", first.expected),
                    Some(first) => write!(f, ": expected {} at `{}`", first.expected, first.pointer),
                    None => Ok(()),
                }
            }
            Self::Unsettled(error) => error.fmt(f),
            Self::Model(error) => error.fmt(f),
            Self::Incomplete { error: Some(error), .. } => error.fmt(f),
            Self::Incomplete { finish, error: None } => f.write_str(match finish {
                FinishReason::Length => "the answer was cut off at the output limit",
                FinishReason::ContentFilter => "a filter of the provider stopped the answer",
                FinishReason::Refusal => "the model refused",
                FinishReason::Pause => "the provider paused the turn without a result",
                _ => "the answer broke off",
            }),
            Self::Cancelled => f.write_str("the run was cancelled"),
        }
    }
}
