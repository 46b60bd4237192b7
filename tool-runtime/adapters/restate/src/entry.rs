//! [`Entry`]: what the journal keeps of a step, and what a step that failed means to Restate.

use restate_sdk::errors::{HandlerError, TerminalError};
use serde::{Deserialize, Serialize};
use tool_runtime::agent::{ModelError, ModelErrorKind, Unfinished};
use tool_runtime::runner::ResumeError;
use tool_runtime::store::StoreError;

use crate::delta::Delta;

/// What the journal keeps of a step.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The conversation, as the difference to the one before.
    Kept(Delta),
    /// What was brought does not fit; the conversation is as it was.
    Refused,
    /// The conversation cannot continue.
    Stopped(String),
}

impl Entry {
    /// What to keep of a step without a result. What may pass is retried instead.
    pub(crate) fn unfinished(unfinished: Unfinished) -> Result<Self, HandlerError> {
        match unfinished {
            Unfinished::Store(error) | Unfinished::Refused(ResumeError::Store(error)) => Err(store(error)),
            Unfinished::Refused(_) => Ok(Self::Refused),
            Unfinished::Model(error) if may_pass(&error) => Err(error.into()),
            Unfinished::Model(error) => Ok(Self::Stopped(error.code().to_owned())),
            // The code of an end.
            Unfinished::Other(ended) => Ok(Self::Stopped(ended.to_string())),
            unfinished => Ok(Self::Stopped(unfinished.code().to_owned())),
        }
    }
}

/// Whether the same request may succeed later.
const fn may_pass(error: &ModelError) -> bool {
    match error.kind() {
        ModelErrorKind::Connect | ModelErrorKind::Timeout => true,
        ModelErrorKind::Status(status) => matches!(status, 408 | 429 | 500..),
        _ => false,
    }
}

/// What a store that failed means.
pub(crate) fn store(error: StoreError) -> HandlerError {
    match error {
        StoreError::Corrupt(_) | StoreError::NotLocked | StoreError::Duplicate => terminal(500, error.code()).into(),
        // Its causes can quote what was stored.
        error => HandlerError::from(error.code()),
    }
}

/// An error that no retry helps.
pub(crate) fn terminal(status: u16, code: &str) -> TerminalError {
    TerminalError::new_with_code(status, format!("the conversation cannot be continued ({code})"))
}
