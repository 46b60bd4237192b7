//! The JSON document of a [`ToolExecResult`].

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Body, Delivered, Failed, Suspended};
use crate::call::{
    CallId, DecisionError, Intervention, JsonText, Outcome, Question, SafeError, ToolExecResult, Violation,
};
use crate::media::{Attachments, LeftOut};

/// The document: the data for UIs, without the data that only the model or only operators may read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    tool_call_id: CallId,
    ok: bool,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<JsonText>,
    #[serde(default, skip_serializing_if = "LeftOut::is_none")]
    left_out: LeftOut,
    // The fields of `SafeError` are repeated here, because serde cannot read raw JSON text next to a flattened struct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    safe_message: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Violation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mismatch: Option<DecisionError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<Question>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approvals: Option<Approvals>,
    executed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intervention: Option<Box<Intervention>>,
}

/// The approvals of a call that needs several.
#[derive(Serialize, Deserialize)]
struct Approvals {
    noted: u32,
    required: u32,
}

impl Serialize for ToolExecResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.error().cloned();
        let mismatch = error.as_ref().and_then(|error| error.mismatch);
        let (error_code, tool_code, safe_message, errors) = match error {
            Some(error) => (Some(error.error_code), error.tool_code, Some(error.safe_message), error.errors),
            None => (None, None, None, Vec::new()),
        };
        let (tool_call_id, ok, outcome) = (self.call_id.clone(), self.is_ok(), self.outcome());
        let (value, left_out, executed) = (self.value().cloned(), self.left_out(), self.executed);
        let (question, intervention) = (self.question().cloned(), self.intervention.clone());
        let approvals = self.approvals().map(|(noted, required)| Approvals { noted, required });
        let document = Document {
            tool_call_id,
            ok,
            outcome,
            value,
            left_out,
            error_code,
            tool_code,
            safe_message,
            errors,
            mismatch,
            question,
            approvals,
            executed,
            intervention,
        };
        document.serialize(serializer)
    }
}

/// Reads a serialised result. A document that contradicts itself is refused.
impl<'de> Deserialize<'de> for ToolExecResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;

        let read = Document::deserialize(deserializer)?;
        if read.ok != (read.outcome == Outcome::Ok) || read.error_code.is_some_and(|code| code != read.outcome) {
            return Err(D::Error::custom("`ok`, `outcome` and `errorCode` contradict each other"));
        }
        if read.ok {
            let shown = read.value.ok_or_else(|| D::Error::missing_field("value"))?;
            let delivered =
                Delivered { attachments: Attachments::recorded(0, read.left_out), ..Delivered::shown(shown) };
            let result = Self::delivered(read.tool_call_id, read.executed, delivered);
            return Ok(result.with_intervention(read.intervention));
        }
        let error = SafeError {
            error_code: read.outcome,
            tool_code: read.tool_code,
            safe_message: read.safe_message.unwrap_or_else(|| read.outcome.safe_message().to_owned()),
            errors: read.errors,
            mismatch: read.mismatch,
        };
        let body = if read.outcome.is_suspension() {
            let question = read.question.unwrap_or_else(|| Question::unknown(&read.tool_call_id));
            let approvals = read.approvals.map(|Approvals { noted, required }| (noted, required));
            Body::Suspended(Box::new(Suspended { error, prepared: read.value, question, approvals }))
        } else {
            Body::Failed(Box::new(Failed { error, concealed: false, detail: None }))
        };
        Ok(Self { call_id: read.tool_call_id, executed: read.executed, intervention: read.intervention, body })
    }
}
