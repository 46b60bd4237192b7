//! Reads a provider's error object, in the shapes that providers and gateways write.

use serde_json::Value;

use crate::wire::WireError;
use crate::wire::decode::ErrorCode;

/// The member of an error object that holds the code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeIn {
    /// `code`.
    Code,
    /// `code`; if it is absent, `type`.
    CodeOrType,
}

/// Reads a provider's error: an object with `message` and `code`, or text. Null and empty text are not errors.
pub(crate) fn provider_error(raw: &str, code_in: CodeIn) -> Option<WireError> {
    match serde_json::from_str(raw).unwrap_or(Value::Bool(true)) {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(WireError::provider(&text, None)),
        Value::Object(error) => {
            let message = match error.get("message") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            let code = match error.get("code") {
                Some(Value::String(code)) => Some(ErrorCode::Text(code.clone())),
                Some(Value::Number(code)) => code.as_i64().map(ErrorCode::Number),
                _ => match error.get("type") {
                    Some(Value::String(kind)) if code_in == CodeIn::CodeOrType => Some(ErrorCode::Text(kind.clone())),
                    _ => None,
                },
            };
            Some(WireError::provider(&message, code))
        }
        _ => Some(WireError::provider("", None)),
    }
}

/// Reads an error event (rule R10 of `wire`) in any shape: `{"error": ..}`, the error object itself, or text.
pub(crate) fn event_error(data: &str, code_in: CodeIn) -> WireError {
    let Ok(value) = serde_json::from_str::<Value>(data) else { return WireError::provider(data.trim(), None) };
    let nested = value.get("error").filter(|error| !error.is_null()).unwrap_or(&value);
    provider_error(&nested.to_string(), code_in).unwrap_or_else(|| WireError::provider("", None))
}
