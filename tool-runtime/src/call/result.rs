//! [`ToolExecResult`]: what came out of the gate for one call.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::call::{CallId, Outcome, Violation};

/// The result of one call: projected values or a safe error, never anything else.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecResult {
    /// The id of the call.
    pub tool_call_id: CallId,
    /// `outcome` is [`Outcome::Ok`].
    pub ok: bool,
    /// How it ended or where it stands.
    pub outcome: Outcome,
    /// The projected value as JSON: what a UI, telemetry and records may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Arc<RawValue>>,
    /// The projection for the model where it differs; the prepared payload of a client tool is in `value`.
    #[serde(skip)]
    pub model_value: Option<Arc<RawValue>>,
    /// What went wrong, safe for a model.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub error: Option<SafeError>,
    /// The tool began to run.
    pub executed: bool,
    /// The model was never offered the tool, so it reads the refusal as it reads an unknown name.
    #[serde(skip)]
    pub(crate) concealed: bool,
    /// What the model is told beside a good result.
    #[serde(skip)]
    pub(crate) warning: Option<&'static str>,
    #[serde(skip)]
    pub(crate) detail: Option<Detail>,
}

/// What operators may read of a tool's error. It can hold values, so no log, record or event shows it.
#[derive(Clone)]
pub(crate) struct Detail(pub(crate) Arc<str>);

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// A failure as a model and a UI may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SafeError {
    /// The stable code of the outcome.
    pub error_code: &'static str,
    /// The author's code inside `execution_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_code: Option<String>,
    /// A sentence that holds no values.
    pub safe_message: String,
    /// Where the arguments are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorForModel<'a> {
    ok: bool,
    error_code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_code: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<bool>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl ToolExecResult {
    /// The text of the tool's own error, causes included, for operators. It can hold values: the application
    /// decides where it may go; no record, event, span or log has it.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_ref().map(|detail| &*detail.0)
    }

    /// The text that goes back to the model: the projected JSON (a bare string without its quotes), or
    /// `{"ok":false,"errorCode","message","errors"?}`.
    #[must_use]
    pub fn to_model(&self) -> String {
        if let Some(error) = &self.error {
            let error = ErrorForModel {
                ok: false,
                error_code: if self.concealed { Outcome::Unavailable.code() } else { error.error_code },
                tool_code: error.tool_code.as_deref(),
                message: &error.safe_message,
                executed: self.executed.then_some(true),
                errors: &error.errors,
            };
            return serde_json::to_string(&error).unwrap_or_default();
        }
        let Some(value) = self.model_value.as_ref().or(self.value.as_ref()) else {
            return "null".to_owned();
        };
        let mut text = match serde_json::from_str::<String>(value.get()) {
            Ok(text) => text,
            Err(_) => value.get().to_owned(),
        };
        if let Some(warning) = self.warning {
            text.push_str("\n\n");
            text.push_str(warning);
        }
        text
    }
}
