//! [`ResumeError`]: the reason why a waiting call cannot be finished.

use std::error::Error;
use std::fmt;

use crate::call::{CallId, DecisionError};
use crate::store::StoreError;

/// The reason why a waiting call cannot be finished. Nothing was changed: a call that waited still waits.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResumeError {
    /// No call with this id waits for this answer or decision. It never waited, was finished already, waits for a
    /// person instead of a client or the reverse, belongs to another principal or tenant, was named twice, or the
    /// decider belongs to another tenant.
    NotWaiting(CallId),
    /// The decider may not decide on this call, or a posted decision answers another question than the call asks now.
    /// The attempt is recorded.
    NotAllowed(DecisionError),
    /// The store failed.
    Store(StoreError),
}

impl ResumeError {
    /// Returns the error for a decider who may not decide. For a decider of another tenant, the call does not exist.
    pub(crate) fn barred(call: &CallId, mismatch: DecisionError) -> Self {
        match mismatch {
            DecisionError::DeciderTenant => Self::NotWaiting(call.clone()),
            mismatch => Self::NotAllowed(mismatch),
        }
    }

    /// Returns the stable code: `not_pending`, `not_allowed` or the store's own.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotWaiting(_) => "not_pending",
            Self::NotAllowed(_) => "not_allowed",
            Self::Store(error) => error.code(),
        }
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting(_) => f.write_str("no call waits for this answer; it may have been answered already"),
            Self::NotAllowed(mismatch) => fmt::Display::fmt(mismatch, f),
            Self::Store(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for ResumeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotWaiting(_) | Self::NotAllowed(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}
