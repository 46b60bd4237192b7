//! [`Ending`] and [`Stop`]: the ways in which a call leaves the gate.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::call::{
    CallId, Cause, Delivered, Failed, JsonText, Mismatch, Outcome, Question, SafeError, Suspension, ToolExecResult,
    Violation,
};
use crate::runner::ResumeError;

/// A call left the gate as it should.
pub(super) enum Ending {
    /// With a projected value.
    Delivered(Delivered),
    /// It waits for a person or a client, and is in the store already.
    Suspended(Suspended),
    /// It was seen to end, or runs, elsewhere: this is what is known of it, and its record is not ours to write.
    Elsewhere(Box<ToolExecResult>),
    /// The decision on it was not carried out, because it could not be taken out of the calls that wait.
    NotTaken(ResumeError),
}

/// The reason why a suspended call waits, the question that it asks, and the payload for a client to execute.
pub(super) struct Suspended {
    pub(super) question: Box<Question>,
    pub(super) suspension: Suspension,
    pub(super) prepared: Option<JsonText>,
}

impl Suspended {
    pub(super) const fn outcome(&self) -> Outcome {
        match self.suspension {
            Suspension::Approval => Outcome::ApprovalRequired,
            Suspension::Client => Outcome::ClientRequired,
        }
    }
}

/// A call was refused or failed. Boxed, because every stage returns it or what it made.
pub(super) struct Stop(Box<Refusal>);

/// Why a call was refused or failed. Holds no values, but for `reason`.
pub(super) struct Refusal {
    pub(super) outcome: Outcome,
    pub(super) message: Cow<'static, str>,
    pub(super) errors: Vec<Violation>,
    pub(super) tool_code: Option<String>,
    /// For operators: it can hold values.
    pub(super) reason: Option<Reason>,
    pub(super) cause: Option<Cause>,
    /// What differs between the call as it was suspended and now.
    pub(super) mismatch: Option<Mismatch>,
    /// The model was never offered the tool and must not learn that it exists.
    pub(super) concealed: bool,
}

impl Deref for Stop {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl DerefMut for Stop {
    fn deref_mut(&mut self) -> &mut Refusal {
        &mut self.0
    }
}

/// Why a call failed, for operators.
#[derive(Clone)]
pub(super) struct Reason {
    pub(super) text: Arc<str>,
    pub(super) error_type: Option<&'static str>,
}

impl Stop {
    /// With the fixed sentence of the outcome.
    #[cold]
    pub(super) fn new(outcome: Outcome) -> Self {
        Self(Box::new(Refusal {
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

    /// A call that waits does not fit what would finish it.
    pub(super) fn mismatch(mismatch: Mismatch) -> Self {
        let mut stop = Self::new(Outcome::ApprovalMismatch);
        stop.mismatch = Some(mismatch);
        stop.reason(mismatch.to_string(), None)
    }

    pub(super) fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    pub(super) fn errors(mut self, errors: Vec<Violation>) -> Self {
        self.errors = errors;
        self
    }

    /// The result of a call that ends like this.
    #[cold]
    pub(super) fn result(&self, id: CallId, executed: bool) -> ToolExecResult {
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

    /// Sets what operators may read; an empty text is ignored.
    pub(super) fn reason(mut self, text: impl Into<Arc<str>>, error_type: Option<&'static str>) -> Self {
        let text = text.into();
        self.reason = (!text.is_empty()).then_some(Reason { text, error_type });
        self
    }
}

/// The longest sentence and the longest code that a tool's error or a person may have, in bytes: they are no way round
/// the result limit.
pub(super) const MAX_MESSAGE_BYTES: usize = 2048;
pub(super) const MAX_CODE_BYTES: usize = 128;
