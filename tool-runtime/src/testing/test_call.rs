//! [`TestCall`]: the result of a call that a test made, with methods that assert on it.

#![allow(clippy::must_use_candidate, reason = "an assertion returns the call for the next one")]

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::call::{ToolExecResult, ToolInvocationRecord};

/// A call that a test made, with its result and its record. It dereferences to the result.
///
/// Each assertion panics with the result and the record as JSON, so that a failed test shows which stage ended the
/// call.
///
/// ```
/// use serde_json::json;
/// use tool_runtime::{ToolCatalog, ToolError, testing, tool};
///
/// # /// Orders a part.
/// # #[tool(name = "orders__place", effect = state_change, redact = ["$"])]
/// # fn place(
/// #     /// How many.
/// #     #[schemars(range(min = 1))] count: u32,
/// # ) -> Result<u32, ToolError> { Ok(count) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let harness = testing::harness(ToolCatalog::builder().tool::<place>().build()?);
/// let call = harness.call("orders__place", json!({ "count": 0 })).await;
/// call.assert_outcome("validation_error").assert_violation("/count");
/// assert_eq!(call.record().map(|record| record.executed), Some(false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TestCall {
    pub(super) result: ToolExecResult,
    pub(super) record: Option<ToolInvocationRecord>,
    pub(super) capability_calls: Vec<String>,
}

impl TestCall {
    /// Returns the record of the call: the closed one, or the open one of a call that waits. `None` if the store has
    /// neither.
    #[must_use]
    pub const fn record(&self) -> Option<&ToolInvocationRecord> {
        self.record.as_ref()
    }

    /// Returns the methods of capabilities that the call used so far, as
    /// [`Harness::capability_calls`](super::Harness::capability_calls) does for all calls.
    #[must_use]
    pub fn capability_calls(&self) -> &[String] {
        &self.capability_calls
    }

    /// Asserts the methods that the call used, in order: `["Stock::find", "Stock::take"]`, and
    /// `["Stock::take(\"P-10\", 2)"]` under [`Harness::record_arguments`](super::Harness::record_arguments).
    ///
    /// # Panics
    /// The call used other methods.
    #[track_caller]
    pub fn assert_capability_calls<const N: usize>(&self, expected: [&str; N]) -> &Self {
        assert!(self.capability_calls == expected, "expected the capability calls {expected:?}\n{self}");
        self
    }

    /// Asserts that the call succeeded with this output. The output has the fields in `redact`, but not the fields in
    /// `model`, which only [`to_model`](ToolExecResult::to_model) has.
    ///
    /// # Panics
    /// The call ended otherwise.
    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "callers write `json!(..)`")]
    pub fn assert_value(&self, expected: Value) -> &Self {
        let value = self.result.value().and_then(|value| serde_json::from_str::<Value>(value.get()).ok());
        assert!(self.result.is_ok() && value.as_ref() == Some(&expected), "expected the value {expected}\n{self}");
        self
    }

    /// Asserts the [code](crate::Outcome::code) of the outcome.
    ///
    /// # Panics
    /// The outcome has another code.
    #[track_caller]
    pub fn assert_outcome(&self, code: &str) -> &Self {
        assert!(self.result.outcome().code() == code, "expected the outcome {code}\n{self}");
        self
    }

    /// Asserts that the arguments were refused because of a violation at this JSON Pointer.
    ///
    /// # Panics
    /// There is no violation at the pointer.
    #[track_caller]
    pub fn assert_violation(&self, pointer: &str) -> &Self {
        let errors = self.result.error().map(|error| &error.errors);
        let is_named = errors.is_some_and(|errors| errors.iter().any(|one| one.pointer == pointer));
        assert!(is_named, "expected a violation at {pointer}\n{self}");
        self
    }
}

impl Deref for TestCall {
    type Target = ToolExecResult;

    fn deref(&self) -> &ToolExecResult {
        &self.result
    }
}

impl fmt::Display for TestCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outcome: {}\nthe model reads: {}", self.result.outcome().code(), self.result.to_model())?;
        if let Some(detail) = self.result.detail() {
            write!(f, "\nfor operators: {detail}")?;
        }
        // The value omits the fields that only the model sees.
        if let Some(value) = self.result.value().filter(|value| self.result.to_model() != value.get()) {
            write!(f, "\nthe value, which all readers see: {}", value.get())?;
        }
        for call in &self.capability_calls {
            write!(f, "\ncapability: {call}")?;
        }
        match self.record.as_ref().map(serde_json::to_string_pretty) {
            Some(Ok(record)) => write!(f, "\nrecord: {record}"),
            _ => f.write_str("\nno record"),
        }
    }
}
