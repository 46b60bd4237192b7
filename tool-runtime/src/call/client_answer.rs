//! [`ClientAnswer`]: a client's answer to the call of a client tool, which the client executes in place of the server.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::CallId;

/// A client's answer to the call of a client tool, which the client executes in place of the server.
///
/// ```
/// use tool_runtime::call::ClientAnswer;
///
/// let answers = [ClientAnswer::value("call_1", r#"{"line":7}"#), ClientAnswer::failed("call_2")];
/// # let _ = answers;
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientAnswer {
    /// The result, as JSON text.
    Value {
        /// The id of the call.
        id: CallId,
        /// The result.
        json: String,
    },
    /// The client could not execute the call.
    Failed {
        /// The id of the call.
        id: CallId,
    },
}

impl ClientAnswer {
    /// Creates the answer with the result of a call, as JSON text.
    #[must_use]
    pub fn value(id: impl Into<CallId>, json: impl Into<String>) -> Self {
        Self::Value { id: id.into(), json: json.into() }
    }

    /// Creates the answer of a client that could not execute the call.
    #[must_use]
    pub fn failed(id: impl Into<CallId>) -> Self {
        Self::Failed { id: id.into() }
    }

    /// Returns the id of the answered call.
    #[must_use]
    pub fn id(&self) -> &CallId {
        match self {
            Self::Value { id, .. } | Self::Failed { id } => id,
        }
    }
}

impl fmt::Debug for ClientAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAnswer").field("id", self.id()).finish_non_exhaustive()
    }
}
