//! [`SafeError`]: the error of a call, in a form that is safe for models and UIs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{DecisionError, Outcome, Violation};

/// The error of a call, in a form that is safe for models and UIs.
///
/// ```
/// use tool_runtime::{Outcome, ToolCatalog, ToolError, testing, tool};
///
/// /// Doubles a number.
/// #[tool(name = "math__double", effect = read_only, redact = ["$"])]
/// fn double(
///     /// The number.
///     number: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(2 * number)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let harness = testing::harness(ToolCatalog::builder().tool::<double>().build()?);
/// let call = harness.call("math__double", serde_json::json!({ "number": "two" })).await;
/// let error = call.error().ok_or("the call succeeded")?;
/// assert_eq!((error.error_code, error.errors[0].pointer.as_str()), (Outcome::ValidationError, "/number"));
/// // The error does not contain the value of the argument.
/// assert!(!error.to_string().contains("two"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SafeError {
    /// The outcome; never [`Outcome::Ok`].
    pub error_code: Outcome,
    /// The code of the tool's own error, for an `execution_error`; for a `cancelled` call `in_progress` (another call
    /// was causing the effect), `world_changed` (the precondition changed after each approval) or `run_purged`. `None`
    /// if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_code: Option<String>,
    /// A sentence for models and UIs. It comes from this library, without argument values, or from the tool's author or
    /// a person who denied the call.
    pub safe_message: String,
    /// The rules that the arguments, or a value in place of the output, break.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
    /// For [`Outcome::ApprovalMismatch`], the reason why the decision does not count. The model does not read it.
    /// `None` if only the content of the decision or the answer is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<DecisionError>,
}

impl SafeError {
    /// Creates a failure that one sentence describes.
    pub(crate) fn new(error_code: Outcome, message: &str) -> Self {
        Self { error_code, tool_code: None, safe_message: message.to_owned(), errors: Vec::new(), mismatch: None }
    }

    /// Creates the failure of a decision that does not match its call.
    pub(crate) fn mismatched(mismatch: DecisionError) -> Self {
        let outcome = Outcome::ApprovalMismatch;
        Self { mismatch: Some(mismatch), ..Self::new(outcome, outcome.safe_message()) }
    }

    /// Returns the text that the model reads.
    pub(super) fn to_model(&self, code: Outcome, executed: bool, note: Option<&str>) -> String {
        let error = ErrorForModel {
            ok: false,
            error_code: code,
            tool_code: self.tool_code.as_deref(),
            message: if self.safe_message.is_empty() { code.safe_message() } else { &self.safe_message },
            executed: executed.then_some(true),
            errors: &self.errors,
            note,
        };
        serde_json::to_string(&error).unwrap_or_default()
    }
}

impl fmt::Display for SafeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.safe_message)
    }
}

impl std::error::Error for SafeError {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorForModel<'a> {
    ok: bool,
    error_code: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_code: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}
