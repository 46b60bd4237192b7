//! [`ProviderState`]: data that only one provider understands.

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::wire::Format;
use crate::wire::decode::cursor::Json;

const NOT_AN_OBJECT: ParseError =
    ParseError::new("provider_state_not_an_object", "provider state must be one JSON object");

/// A JSON object that only one provider understands and that it wants back in the next request: a signature, encrypted
/// reasoning, or a block of one of its own tools.
///
/// Encoders of the same format send it back byte for byte; encoders of other formats leave it out. State that names a
/// model, such as signed reasoning, is bound to that model. The calls and results of a provider's own tools, such as a
/// web search, name no model, because every model of the format reads them. Provider state is never executed and never
/// shown; `Debug` prints only its size.
///
/// ```
/// use tool_runtime::wire::Format;
/// use tool_runtime::wire::history::ProviderState;
///
/// let state = ProviderState::new(Format::Anthropic, None, r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#)?;
/// assert!(state.fits(Format::Anthropic, Some("claude-sonnet-4-5")));
/// assert!(!state.fits(Format::Gemini, None));
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Saved")]
pub struct ProviderState {
    format: Format,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Saved as a string, because a store that parses JSON could rewrite it.
    json: Arc<str>,
}

/// Saved provider state before the check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: Format,
    #[serde(default)]
    model: Option<String>,
    json: String,
}

impl TryFrom<Saved> for ProviderState {
    type Error = ParseError;

    fn try_from(Saved { format, model, json }: Saved) -> Result<Self, ParseError> {
        Self::new(format, model.as_deref(), json)
    }
}

impl ProviderState {
    /// Creates provider state of a format and, if the model is known, of a model.
    ///
    /// # Errors
    /// The text is not one JSON object.
    pub fn new(format: Format, model: Option<&str>, json: impl Into<String>) -> Result<Self, ParseError> {
        let json = json.into();
        let is_object = json.starts_with('{') && serde_json::from_str::<IgnoredAny>(&json).is_ok();
        let model = model.map(str::to_owned);
        if is_object { Ok(Self { format, model, json: json.trim_end().into() }) } else { Err(NOT_AN_OBJECT) }
    }

    /// Creates provider state from an object that a decoder read.
    pub(crate) fn read(format: Format, json: String) -> Self {
        Self { format, model: None, json: json.into() }
    }

    /// The JSON object, for sharing without a copy.
    pub(crate) const fn shared(&self) -> &Arc<str> {
        &self.json
    }

    pub(crate) fn set_model(&mut self, model: Option<&str>) {
        self.model = model.map(str::to_owned);
    }

    /// Whether every member is empty: some providers write fields without a value.
    pub(crate) fn says_nothing(&self) -> bool {
        let mut nothing = true;
        let read = Json::new(&self.json).object(|json, _| {
            nothing &= matches!(json.raw()?, "null" | "[]" | "{}" | "\"\"");
            Ok(())
        });
        read.is_ok() && nothing
    }

    /// Returns the format of the response that contained this state.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the model that the state is bound to; `None` if every model of the format reads it, or the model is
    /// unknown.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the JSON object as the provider sent it.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns whether a request in this format to this model may contain the state. State without a model fits every
    /// model.
    #[must_use]
    pub fn fits(&self, format: Format, model: Option<&str>) -> bool {
        let same_model = self.model().zip(model).is_none_or(|(from, to)| from == to);
        self.format == format && same_model
    }
}

// The JSON can hold reasoning, which stays out of logs.
impl fmt::Debug for ProviderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderState")
            .field("format", &self.format)
            .field("model", &self.model)
            .field("bytes", &self.json.len())
            .finish()
    }
}
