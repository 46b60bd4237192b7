//! The sentences that a model reads when a call does not end well. They hold no values.

use crate::call::Outcome;

/// What unknown and denied tools have in common, so that neither can be told from the other.
pub(super) const NO_SUCH_TOOL: &str =
    "There is no tool of this name in this conversation. Call only tools that were offered to you.";

/// The fixed sentence for an outcome.
pub(super) const fn fixed(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "Done.",
        Outcome::InvalidJson => "The arguments are not one valid JSON object. Send them again as a JSON object.",
        Outcome::ValidationError => "The arguments break the tool's schema. Correct them as `errors` says.",
        Outcome::InstantiateFailed => "The tool could not read arguments that its schema allows. Do not try again.",
        Outcome::LimitExceeded => "The call is larger than allowed. Send less.",
        Outcome::IncompleteCall => "Your message was cut off, so this call did not run. Make it again.",
        Outcome::Unavailable => NO_SUCH_TOOL,
        Outcome::PolicyDenied => "The policy does not allow this call. Do not try it again.",
        Outcome::ApprovalRequired => "The call waits for a person's approval. It has not run.",
        Outcome::ApprovalDenied => "A person refused this call. It did not run.",
        Outcome::ApprovalMismatch => "The approval does not belong to this call. It did not run.",
        Outcome::ApprovalExpired => "Nobody approved the call in time. It did not run.",
        Outcome::ClientRequired => "The call waits for the client to execute it.",
        Outcome::BudgetExceeded => "The budget of this run is used up. The call did not run.",
        Outcome::ConnectionUnavailable => {
            "The account that this tool needs is not connected. Ask the user to connect it."
        }
        Outcome::Timeout => "The tool took too long and was stopped.",
        Outcome::OutcomeUnknown => {
            "The tool was interrupted after it had begun. It may or may not have taken effect: check before anything else, do not repeat the call blindly."
        }
        Outcome::Cancelled => "The call was cancelled.",
        Outcome::ExecutionError => crate::error::FIXED_SAFE_MESSAGE,
        Outcome::Panicked => "The tool failed unexpectedly. The failure was logged for the operators.",
        Outcome::OutputInvalid => {
            "The tool ran, but its answer is not valid and was withheld. Do not repeat the call blindly."
        }
        Outcome::RedactionFailed => "The tool's answer cannot be shown.",
        Outcome::ResultTooLarge => "The tool ran, but its answer is too large to return. Ask for less.",
    }
}
