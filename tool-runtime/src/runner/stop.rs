//! [`Stop`] and [`Ended`]: how a call leaves the gate.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::call::{Cause, Outcome, Violation};

/// A call ended well.
pub(super) struct Ended {
    pub(super) shown: Arc<RawValue>,
    pub(super) model: Option<Arc<RawValue>>,
    pub(super) warning: Option<&'static str>,
}

/// A call ended otherwise, or waits. Holds no values, but for `detail`.
pub(super) struct Stop {
    pub(super) outcome: Outcome,
    pub(super) message: Cow<'static, str>,
    pub(super) errors: Vec<Violation>,
    pub(super) tool_code: Option<String>,
    /// The text of the tool's own error, for operators.
    pub(super) detail: Option<Arc<str>>,
    pub(super) cause: Option<Cause>,
    /// The model was never offered the tool and must not learn that it exists.
    pub(super) concealed: bool,
    /// What a client is to execute.
    pub(super) prepared: Option<Arc<RawValue>>,
}

impl Stop {
    /// With the fixed sentence of the outcome.
    pub(super) fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            message: outcome.safe_message().into(),
            errors: Vec::new(),
            tool_code: None,
            detail: None,
            cause: None,
            concealed: false,
            prepared: None,
        }
    }

    pub(super) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    pub(super) fn errors(mut self, errors: Vec<Violation>) -> Self {
        self.errors = errors;
        self
    }
}
