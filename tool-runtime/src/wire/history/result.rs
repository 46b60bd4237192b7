//! [`ResultMessage`]: the result of a call in a history.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{CallId, Outcome, ToolExecResult};
use crate::wire::history::{Media, Missing};

/// The result of a call in a history.
///
/// [`Message`](crate::wire::Message) has an example.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResultMessage {
    /// The id of the call.
    pub id: CallId,
    /// The text that the model reads.
    pub content: String,
    /// Images, audio and files that the tool attached to its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ResultMessage {
    /// Creates the result of a call that succeeded.
    #[must_use]
    pub fn new(id: impl Into<CallId>, content: impl Into<String>) -> Self {
        Self { id: id.into(), content: content.into(), media: Vec::new(), is_error: false }
    }

    /// Creates the result of a call that failed.
    #[must_use]
    pub fn failed(id: impl Into<CallId>, content: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::new(id, content) }
    }

    /// Creates the result of a call that did not begin or had no effect: the model may call again.
    #[must_use]
    pub fn cancelled(id: impl Into<CallId>) -> Self {
        Self::missing(id.into(), Missing::Cancelled)
    }

    /// Creates the result of a call that may have taken effect: the model must check first.
    #[must_use]
    pub fn outcome_unknown(id: impl Into<CallId>) -> Self {
        Self::missing(id.into(), Missing::OutcomeUnknown)
    }

    /// Creates the result that replaces a missing one.
    pub(crate) fn missing(id: CallId, missing: Missing) -> Self {
        let (outcome, message) = match missing {
            Missing::Cancelled => (Outcome::Cancelled, "The call was cancelled before it had a result."),
            Missing::OutcomeUnknown => (Outcome::OutcomeUnknown, Outcome::OutcomeUnknown.safe_message()),
        };
        let executed = missing == Missing::OutcomeUnknown;
        let result = ToolExecResult::unfinished(id, outcome, executed, message);
        Self::from(&result)
    }
}

impl From<&ToolExecResult> for ResultMessage {
    fn from(result: &ToolExecResult) -> Self {
        let message = Self::new(result.call_id().clone(), result.to_model());
        Self { is_error: !result.is_ok(), media: result.media().to_vec(), ..message }
    }
}

// Results stay out of logs.
impl fmt::Debug for ResultMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultMessage").field("id", &self.id).field("is_error", &self.is_error).finish_non_exhaustive()
    }
}
