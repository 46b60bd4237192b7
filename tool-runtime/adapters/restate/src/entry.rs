//! [`Entry`]: the journaled result of a step, and the mapping of failed steps to Restate's errors.

use restate_sdk::errors::{HandlerError, TerminalError};
use serde::{Deserialize, Serialize};
use tool_runtime::agent::{ModelError, StepError};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;

use crate::delta::Delta;

/// The journaled result of a step.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The new document of the conversation, as the difference from the previous one.
    Kept(Delta),
    /// The decision or answer was refused; the conversation is unchanged.
    Refused,
    /// The conversation cannot continue; the text is the code of the reason.
    Stopped(String),
}

impl Entry {
    /// Returns the entry for a step without a result.
    ///
    /// # Errors
    /// The failure is transient, so that Restate retries the step.
    pub(crate) fn unfinished(unfinished: StepError) -> Result<Self, HandlerError> {
        match unfinished {
            StepError::Store(error) | StepError::Refused(ResumeError::Store(error)) => Err(store(error)),
            StepError::Refused(_) => Ok(Self::Refused),
            StepError::Model(error) if may_pass(&error) => Err(error.into()),
            StepError::Model(error) => Ok(Self::Stopped(error.code().to_owned())),
            // The text is the code of a `TurnOutcome`.
            StepError::Other(ended) => Ok(Self::Stopped(ended.to_string())),
            unfinished => Ok(Self::Stopped(unfinished.code().to_owned())),
        }
    }
}

/// Whether the same model request may succeed later.
fn may_pass(error: &ModelError) -> bool {
    matches!(error.code(), "model_unreachable" | "model_timeout") || matches!(error.status(), Some(408 | 429 | 500..))
}

/// Converts a store's error. Damage and mistakes of the program are terminal; Restate retries all other errors.
pub(crate) fn store(error: StoreError) -> HandlerError {
    // The text has only the code, because the causes can quote stored values.
    match error {
        error if is_terminal(&error) => terminal(500, error.code()).into(),
        error => HandlerError::from(error.code()),
    }
}

/// Whether a store's error is damage or a mistake of the program, so that another attempt would fail, too.
pub(crate) const fn is_terminal(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt(_) | StoreError::NotLocked | StoreError::Duplicate | StoreError::RunPurged)
}

/// Returns an error that Restate does not retry.
pub(crate) fn terminal(status: u16, code: &str) -> TerminalError {
    TerminalError::new_with_code(status, format!("the conversation cannot be continued ({code})"))
}
