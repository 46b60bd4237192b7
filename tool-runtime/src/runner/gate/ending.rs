//! [`Ending`] and [`Stop`]: the two results of a call in the gate.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::call::{
    CallId, Cause, DecisionError, Delivered, Failed, JsonText, Outcome, Question, SafeError, Suspension,
    ToolExecResult, Violation,
};
use crate::runner::ResumeError;

/// An ending that is neither a refusal nor a failure.
pub(in crate::runner) enum Ending {
    /// A projected value for the model.
    Delivered(Delivered),
    /// The call waits for a person or a client, and is in the store already.
    Suspended(Suspended),
    /// The call ended or runs in another process. This is its known result; this process does not write its record.
    Elsewhere(Box<ToolExecResult>),
    /// The decision was not carried out, because the call could not be claimed.
    NotTaken(ResumeError),
    /// The decision has no effect, and the call still waits. Contains the result of the decision.
    Refused(Box<ToolExecResult>),
}

/// The reason why a suspended call waits, the question that it asks, and the payload for a client to execute.
pub(in crate::runner) struct Suspended {
    pub(in crate::runner) question: Box<Question>,
    pub(in crate::runner) suspension: Suspension,
    pub(in crate::runner) prepared: Option<JsonText>,
}

impl Suspended {
    pub(in crate::runner) const fn outcome(&self) -> Outcome {
        match self.suspension {
            Suspension::Approval => Outcome::ApprovalRequired,
            Suspension::Client => Outcome::ClientRequired,
        }
    }
}

/// A call that was refused or failed. Boxed to stay small, because every stage can return it.
pub(in crate::runner) struct Stop(Box<CallRefusal>);

/// The reason why a call was refused or failed. Only `reason`, and a `message` written by the tool's author, can
/// contain argument or output values.
pub(in crate::runner) struct CallRefusal {
    pub(in crate::runner) outcome: Outcome,
    pub(in crate::runner) message: Cow<'static, str>,
    pub(in crate::runner) errors: Vec<Violation>,
    pub(in crate::runner) tool_code: Option<String>,
    /// The details for operators. They can contain argument or output values.
    pub(in crate::runner) reason: Option<Reason>,
    pub(in crate::runner) cause: Option<Cause>,
    /// The difference between the suspended call and its present state.
    pub(in crate::runner) mismatch: Option<DecisionError>,
    /// Set if the model was never offered the tool and must not learn that it exists.
    pub(in crate::runner) concealed: bool,
}

impl Deref for Stop {
    type Target = CallRefusal;

    fn deref(&self) -> &CallRefusal {
        &self.0
    }
}

impl DerefMut for Stop {
    fn deref_mut(&mut self) -> &mut CallRefusal {
        &mut self.0
    }
}

/// The reason why a call failed, for operators.
#[derive(Clone)]
pub(in crate::runner) struct Reason {
    pub(in crate::runner) text: Arc<str>,
    pub(in crate::runner) error_type: Option<&'static str>,
}

impl Stop {
    /// Creates a stop with the fixed sentence of the outcome.
    #[cold]
    pub(in crate::runner) fn new(outcome: Outcome) -> Self {
        Self(Box::new(CallRefusal {
            outcome,
            message: outcome.safe_message().into(),
            errors: Vec::new(),
            tool_code: None,
            reason: None,
            cause: None,
            mismatch: None,
            concealed: false,
        }))
    }

    /// Creates a stop for a waiting call that does not match the decision or the result that would finish it.
    pub(in crate::runner) fn mismatch(mismatch: DecisionError) -> Self {
        let mut stop = Self::new(Outcome::ApprovalMismatch);
        stop.mismatch = Some(mismatch);
        stop.reason(mismatch.to_string(), None)
    }

    pub(in crate::runner) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    pub(in crate::runner) fn errors(mut self, errors: Vec<Violation>) -> Self {
        self.errors = errors;
        self
    }

    /// Returns the stop of a call whose outcome is unknown, with the same details for operators.
    #[cold]
    pub(in crate::runner) fn unknown(self) -> Self {
        let mut stop = Self::new(Outcome::OutcomeUnknown);
        (stop.reason, stop.cause) = (self.0.reason, Some(Cause::Lost));
        stop
    }

    /// Returns the result of a call that stops here.
    #[cold]
    pub(in crate::runner) fn result(&self, id: CallId, executed: bool) -> ToolExecResult {
        let error = SafeError {
            error_code: self.outcome,
            tool_code: self.tool_code.clone(),
            safe_message: self.message.to_string(),
            errors: self.errors.clone(),
            mismatch: self.mismatch,
        };
        let detail = self.reason.as_ref().map(|reason| Arc::clone(&reason.text));
        ToolExecResult::failed(id, executed, Failed { error, concealed: self.concealed, detail })
    }

    /// Sets the details for operators; an empty text is ignored.
    pub(in crate::runner) fn reason(mut self, text: impl Into<Arc<str>>, error_type: Option<&'static str>) -> Self {
        let text = text.into();
        self.reason = (!text.is_empty()).then_some(Reason { text, error_type });
        self
    }
}

/// The maximum length in bytes of the message of a tool's author or of a person. Without this limit, a message could be
/// longer than any result.
pub(in crate::runner) const MAX_MESSAGE_BYTES: usize = 2048;
pub(in crate::runner) const MAX_CODE_BYTES: usize = 128;
