//! [`ApprovalDecision`]: what a person decides on a call that waits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::DecisionKind;

/// What a person decides on a call that waits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// It may run as it is.
    Approve,
    /// It may run with these arguments, a JSON object as text. They are validated and decided again; until they fit, the
    /// call waits.
    ApproveEdited(String),
    /// It does not run. The model reads the message, of which at most 2,048 bytes are kept.
    Deny(Option<String>),
    /// It does not run; this JSON value takes the place of the tool's output and is projected like it.
    Respond(String),
}

impl ApprovalDecision {
    /// Returns the kind of the decision, as records name it.
    #[must_use]
    pub const fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve => DecisionKind::Approved,
            Self::ApproveEdited(_) => DecisionKind::Edited,
            Self::Deny(_) => DecisionKind::Denied,
            Self::Respond(_) => DecisionKind::Answered,
        }
    }
}

impl fmt::Debug for ApprovalDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Approve => "Approve",
            Self::ApproveEdited(_) => "ApproveEdited(..)",
            Self::Deny(_) => "Deny(..)",
            Self::Respond(_) => "Respond(..)",
        })
    }
}
