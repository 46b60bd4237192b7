//! [`Outcome`]: how a call ended, or why it waits. Exhaustive, with stable codes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The end of a call, or the reason why it waits.
///
/// The codes ([`Outcome::code`]) are stable: records, models, policies and exit codes use them.
///
/// | code | outcome | meaning |
/// | --- | --- | --- |
/// | `ok` | [`Ok`](Self::Ok) | The tool ran, and its value was returned after redaction. |
/// | `invalid_json` | [`InvalidJson`](Self::InvalidJson) | The arguments are not one JSON object. |
/// | `validation_error` | [`ValidationError`](Self::ValidationError) | The arguments break the schema or a semantic rule. |
/// | `instantiate_failed` | [`InstantiateFailed`](Self::InstantiateFailed) | The tool's type refused arguments that its schema allows. This is a defect of the tool. |
/// | `limit_exceeded` | [`LimitExceeded`](Self::LimitExceeded) | The arguments exceed a limit on their size or depth. |
/// | `incomplete_call` | [`IncompleteCall`](Self::IncompleteCall) | The model's turn was cut off or failed, so no call of it runs. |
/// | `unavailable` | [`Unavailable`](Self::Unavailable) | The run has no such tool, or has not offered it to the model. |
/// | `policy_denied` | [`PolicyDenied`](Self::PolicyDenied) | The policy does not allow the call, or its id was used before in the run. |
/// | `approval_required` | [`ApprovalRequired`](Self::ApprovalRequired) | Suspended: a person has to decide. |
/// | `approval_denied` | [`ApprovalDenied`](Self::ApprovalDenied) | A person denied the call, or earlier denied all calls like it. |
/// | `approval_mismatch` | [`ApprovalMismatch`](Self::ApprovalMismatch) | The decision or the client's result does not fit the call: the run, the policy or the tool changed, or the value is invalid. |
/// | `approval_expired` | [`ApprovalExpired`](Self::ApprovalExpired) | The call was not approved in time. |
/// | `client_required` | [`ClientRequired`](Self::ClientRequired) | Suspended: a client has to execute the call. |
/// | `budget_exceeded` | [`BudgetExceeded`](Self::BudgetExceeded) | A budget is used up, the run has had too many calls, or the model repeated the same call too often. |
/// | `connection_unavailable` | [`ConnectionUnavailable`](Self::ConnectionUnavailable) | An account that the tool needs is not connected, has expired, or belongs to another principal. |
/// | `connection_failed` | [`ConnectionFailed`](Self::ConnectionFailed) | The tool did not run: the broker of connections failed, so it is unknown whether the account is connected, or the MCP server of the tool did not answer. |
/// | `timeout` | [`Timeout`](Self::Timeout) | A read-only tool took too long. |
/// | `outcome_unknown` | [`OutcomeUnknown`](Self::OutcomeUnknown) | A tool with effects was interrupted; it is unknown whether it took effect. |
/// | `cancelled` | [`Cancelled`](Self::Cancelled) | The call did not run or had no effect: it was cancelled or could not begin, or a read-only tool was cancelled or lost its connection. |
/// | `execution_error` | [`ExecutionError`](Self::ExecutionError) | The tool returned an error. |
/// | `panicked` | [`Panicked`](Self::Panicked) | A read-only tool panicked. |
/// | `output_invalid` | [`OutputInvalid`](Self::OutputInvalid) | The tool ran, but its output breaks its own schema. |
/// | `redaction_failed` | [`RedactionFailed`](Self::RedactionFailed) | The output cannot be redacted; nothing is shown. |
/// | `result_too_large` | [`ResultTooLarge`](Self::ResultTooLarge) | The tool ran, but its result is too large to return. |
///
/// ```
/// use tool_runtime::Outcome;
///
/// assert_eq!(Outcome::PolicyDenied.code(), "policy_denied");
/// assert!(Outcome::ApprovalRequired.is_suspension());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool ran, and its value was returned after redaction.
    Ok,
    /// The arguments are not one JSON object.
    InvalidJson,
    /// The arguments break the schema or a semantic rule.
    ValidationError,
    /// The tool's type refused arguments that its schema allows. This is a defect of the tool.
    InstantiateFailed,
    /// The arguments exceed a limit on their size or depth.
    LimitExceeded,
    /// The model's turn was cut off or failed, so no call of it runs.
    IncompleteCall,
    /// The run has no such tool, or has not offered it to the model.
    Unavailable,
    /// The policy does not allow the call, or its id was used before in the run.
    PolicyDenied,
    /// Suspended: a person has to decide.
    ApprovalRequired,
    /// A person denied the call, or earlier denied all calls like it.
    ApprovalDenied,
    /// The decision or the client's result does not fit the call: the run, the policy or the tool changed, or the value
    /// is invalid.
    ApprovalMismatch,
    /// The call was not approved in time.
    ApprovalExpired,
    /// Suspended: a client has to execute the call.
    ClientRequired,
    /// A budget is used up, the run has had too many calls, or the model repeated the same call too often.
    BudgetExceeded,
    /// An account that the tool needs is not connected, has expired, or belongs to another principal.
    ConnectionUnavailable,
    /// The tool did not run: the broker of connections failed, so it is unknown whether the account is connected, or
    /// the MCP server of the tool did not answer.
    ConnectionFailed,
    /// A read-only tool took too long.
    Timeout,
    /// A tool with effects was interrupted; it is unknown whether it took effect.
    OutcomeUnknown,
    /// The call did not run or had no effect: it was cancelled or could not begin, or a read-only tool was cancelled or
    /// lost its connection.
    Cancelled,
    /// The tool returned an error.
    ExecutionError,
    /// A read-only tool panicked.
    Panicked,
    /// The tool ran, but its output breaks its own schema.
    OutputInvalid,
    /// The output cannot be redacted; nothing is shown.
    RedactionFailed,
    /// The tool ran, but its result is too large to return.
    ResultTooLarge,
}

impl Outcome {
    /// All outcomes, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::Ok,
        Self::InvalidJson,
        Self::ValidationError,
        Self::InstantiateFailed,
        Self::LimitExceeded,
        Self::IncompleteCall,
        Self::Unavailable,
        Self::PolicyDenied,
        Self::ApprovalRequired,
        Self::ApprovalDenied,
        Self::ApprovalMismatch,
        Self::ApprovalExpired,
        Self::ClientRequired,
        Self::BudgetExceeded,
        Self::ConnectionUnavailable,
        Self::ConnectionFailed,
        Self::Timeout,
        Self::OutcomeUnknown,
        Self::Cancelled,
        Self::ExecutionError,
        Self::Panicked,
        Self::OutputInvalid,
        Self::RedactionFailed,
        Self::ResultTooLarge,
    ];

    /// Returns the stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InvalidJson => "invalid_json",
            Self::ValidationError => "validation_error",
            Self::InstantiateFailed => "instantiate_failed",
            Self::LimitExceeded => "limit_exceeded",
            Self::IncompleteCall => "incomplete_call",
            Self::Unavailable => "unavailable",
            Self::PolicyDenied => "policy_denied",
            Self::ApprovalRequired => "approval_required",
            Self::ApprovalDenied => "approval_denied",
            Self::ApprovalMismatch => "approval_mismatch",
            Self::ApprovalExpired => "approval_expired",
            Self::ClientRequired => "client_required",
            Self::BudgetExceeded => "budget_exceeded",
            Self::ConnectionUnavailable => "connection_unavailable",
            Self::ConnectionFailed => "connection_failed",
            Self::Timeout => "timeout",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Cancelled => "cancelled",
            Self::ExecutionError => "execution_error",
            Self::Panicked => "panicked",
            Self::OutputInvalid => "output_invalid",
            Self::RedactionFailed => "redaction_failed",
            Self::ResultTooLarge => "result_too_large",
        }
    }

    /// Whether the call waits for a person or a client.
    #[must_use]
    pub const fn is_suspension(self) -> bool {
        matches!(self, Self::ApprovalRequired | Self::ClientRequired)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// The interruption of a tool that had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// It took too long.
    Timeout,
    /// The run or the caller gave up.
    Cancelled,
    /// It panicked.
    Panicked,
    /// Its process died or lost the lease of the call, or its connection broke off.
    Lost,
    /// An earlier attempt broke off without an effect, and the outside system now refuses that attempt.
    Prevented,
}

impl Cause {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
            Self::Lost => "lost",
            Self::Prevented => "prevented",
        }
    }

    /// Returns the outcome of an interrupted tool with this effect. Only a read-only tool is known to have had no
    /// effect.
    pub(crate) fn outcome(self, effect: crate::tool::ToolEffect) -> Outcome {
        match (effect, self) {
            (_, Self::Prevented) | (crate::tool::ToolEffect::ReadOnly, Self::Cancelled | Self::Lost) => {
                Outcome::Cancelled
            }
            (crate::tool::ToolEffect::ReadOnly, Self::Timeout) => Outcome::Timeout,
            (crate::tool::ToolEffect::ReadOnly, Self::Panicked) => Outcome::Panicked,
            _ => Outcome::OutcomeUnknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn the_table_of_codes_is_the_enum() {
        let rows =
            include_str!("outcome.rs").lines().filter_map(|line| line.strip_prefix("/// | `")?.split('`').next());
        assert_eq!(rows.collect::<Vec<_>>(), Outcome::ALL.iter().map(|outcome| outcome.code()).collect::<Vec<_>>());
    }
}
