//! [`ApprovalDecision`]: a person's decision on a waiting call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::DecisionKind;

/// A person's decision on a waiting call.
///
/// ```
/// use tool_runtime::Run;
/// use tool_runtime::call::{Decider, Question};
/// use tool_runtime::runner::{ApprovalDecision, ResumeError};
///
/// /// Answers the question that Grace was shown.
/// async fn refuse(run: &Run, question: &Question) -> Result<(), ResumeError> {
///     let decision = ApprovalDecision::Deny(Some("Not before Monday.".to_owned()));
///     let result = run.resume(question, decision, &Decider::new("grace").tenant("acme")).await?;
///     assert_eq!(result.outcome().code(), "approval_denied");
///     Ok(())
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// The call may run unchanged.
    Approve,
    /// The call may run with these arguments, a JSON object as text. The gate validates them and evaluates the policy
    /// on them. If it refuses them, the call still waits.
    ApproveEdited(String),
    /// The call does not run. The model reads the message; at most 2,048 bytes of it are kept.
    Deny(Option<String>),
    /// The call does not run. This JSON value replaces the tool's output, and is written through the tool's allowlist
    /// in the same way.
    Respond(String),
}

impl ApprovalDecision {
    /// Returns the kind of the decision, as it appears in records.
    #[must_use]
    pub const fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve => DecisionKind::Approved,
            Self::ApproveEdited(_) => DecisionKind::Edited,
            Self::Deny(_) => DecisionKind::Denied,
            Self::Respond(_) => DecisionKind::Answered,
        }
    }

    /// As [`kind`](Self::kind); `None` stands for the expiry of the call.
    pub(crate) const fn kind_of(decision: Option<&Self>) -> DecisionKind {
        match decision {
            Some(decision) => decision.kind(),
            None => DecisionKind::Expired,
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
