//! The sentences that a model reads when a call fails or waits. They contain no values of arguments or results.

use crate::call::Outcome;
use crate::error::FIXED_SAFE_MESSAGE;

/// The sentence for unknown and for hidden tools, so that a model cannot tell them apart.
pub(crate) const NO_SUCH_TOOL: &str =
    "There is no tool of this name in this conversation. Call only tools that were offered to you.";

impl Outcome {
    /// Returns the sentence that a model and a UI read if there is no more precise one.
    #[must_use]
    pub const fn safe_message(self) -> &'static str {
        match self {
            Self::Ok => "Done.",
            Self::InvalidJson => "The arguments are not one valid JSON object. Send them again as a JSON object.",
            Self::ValidationError => "The arguments break a rule of the tool. Correct them as `errors` says.",
            Self::InstantiateFailed => "The tool could not read arguments that its schema allows. Do not try again.",
            Self::LimitExceeded => "The call is larger than allowed. Send less.",
            Self::IncompleteCall => "Your message did not end as it should, so this call did not run. Make it again.",
            Self::Unavailable => NO_SUCH_TOOL,
            Self::PolicyDenied => "The policy does not allow this call. Do not try it again.",
            Self::ApprovalRequired => "The call waits for a person's approval. It has not run.",
            Self::ApprovalDenied => "A person refused this call. It did not run.",
            Self::ApprovalMismatch => {
                "The approval does not belong to this call, or the call no longer fits the run. It did not run."
            }
            Self::ApprovalExpired => "The call was not approved in time. It did not run.",
            Self::ClientRequired => "The call waits for the client to execute it.",
            Self::BudgetExceeded => "The budget of this run is used up. The call did not run.",
            Self::ConnectionUnavailable => {
                "The account that this tool needs is not connected. Ask the user to connect it."
            }
            Self::ConnectionFailed => {
                "The account that this tool needs cannot be reached because the service failed. The user can do nothing about it: try again later."
            }
            Self::Timeout => "The tool took too long and was stopped.",
            Self::OutcomeUnknown => {
                "The tool was interrupted after it had begun. It may or may not have taken effect: check before anything else, do not repeat the call blindly."
            }
            Self::Cancelled => "The call was cancelled.",
            Self::ExecutionError => FIXED_SAFE_MESSAGE,
            Self::Panicked => "The tool failed unexpectedly. Its operators can see where.",
            Self::OutputInvalid => {
                "The tool ran, but its output is not valid and was withheld. Do not repeat the call blindly."
            }
            Self::RedactionFailed => "The tool's output cannot be shown.",
            Self::ResultTooLarge => "The tool ran, but its output is too large to return. Ask for less.",
        }
    }
}
