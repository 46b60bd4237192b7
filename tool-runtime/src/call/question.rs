//! [`Question`]: the question that a decision answers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::CallId;
use crate::error::ParseError;
use crate::tool::Hash;

const NOT_A_QUESTION: ParseError =
    ParseError::new("not_a_question", "expected 64 hexadecimal digits, a dot and the id of the call");

/// The question that a waiting call asks: its call id, and a digest of the details shown to the person or client that
/// decides.
///
/// A decision contains the question that it answers, so a decision on a question that the call no longer asks is
/// refused. For example, the call of a graph (an agent or a script that runs as a tool) waits once for each inner call
/// that needs a decision, always under its own id but with another question. The digest covers the run, the tenant, the
/// principal, the call, the tool's definition, the time of the suspension, and the shown arguments. It also covers,
/// where the call has them, the inner call of a graph, earlier calls of the same effect with an unknown outcome, the
/// values on which the call depends (its precondition), and edits of the arguments. The shown arguments are masked, so
/// sensitive values cannot be guessed from the digest.
///
/// The text of a question is the digest, a dot and the call's id. UI streams send this text as the id of an approval.
///
/// ```
/// use tool_runtime::call::Question;
///
/// let text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.call_1";
/// let question: Question = text.parse()?;
/// assert_eq!(question.call_id().as_str(), "call_1");
/// assert_eq!(question.to_string(), text);
/// assert!("call_1".parse::<Question>().is_err());
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    call_id: CallId,
    digest: Hash,
}

impl Question {
    /// Creates the question of a call from these parts.
    pub(crate) fn of(call_id: &CallId, parts: &impl Serialize) -> Self {
        // Writing ids, times and JSON text does not fail; if it did, the question would fit no call.
        let text = serde_json::to_vec(&("question", call_id, parts)).unwrap_or_default();
        Self { call_id: call_id.clone(), digest: Hash::sha256(text) }
    }

    /// Creates a placeholder for a call that is known only by its record. It matches no waiting call.
    pub(crate) fn unknown(call_id: &CallId) -> Self {
        Self::of(call_id, &())
    }

    /// Returns the id of the call.
    #[must_use]
    pub const fn call_id(&self) -> &CallId {
        &self.call_id
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.digest, self.call_id)
    }
}

impl FromStr for Question {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (digest, id) = text.split_once('.').filter(|(_, id)| !id.is_empty()).ok_or(NOT_A_QUESTION)?;
        let digest = digest.parse().map_err(|_| NOT_A_QUESTION)?;
        Ok(Self { call_id: CallId::new(id), digest })
    }
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
