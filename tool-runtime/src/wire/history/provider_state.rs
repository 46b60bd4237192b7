//! [`ProviderState`]: data that only one provider understands.

use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::wire::Format;
use crate::wire::decode::cursor::Json;

const NOT_AN_OBJECT: ParseError =
    ParseError::new("provider_state_not_an_object", "a provider state has to be one JSON object");

/// JSON that a provider wants back in the next request and that only this provider understands: a signature, encrypted
/// reasoning, a block of one of its own tools.
///
/// It is replayed byte for byte to the format that it came from, and left out for any other. If it names a model, it is
/// bound to that model, as signed reasoning is. The calls of a provider's own tools, such as a web search, and their
/// results name none: every model of the format reads them. It is never executed and never shown: `Debug` gives its
/// size only.
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
    /// Saved as a string: a store that reads JSON would be free to write it in another way.
    json: Arc<str>,
}

/// A document as it was saved, before it is checked.
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
    /// Creates provider state of a format and, if it is known, a model.
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

    /// The JSON object, to share.
    pub(crate) const fn shared(&self) -> &Arc<str> {
        &self.json
    }

    pub(crate) fn set_model(&mut self, model: Option<&str>) {
        self.model = model.map(str::to_owned);
    }

    /// Whether no member has a value: some providers write fields that they leave empty.
    pub(crate) fn says_nothing(&self) -> bool {
        let mut nothing = true;
        let read = Json::new(&self.json).object(|json, _| {
            nothing &= matches!(json.raw()?, "null" | "[]" | "{}" | "\"\"");
            Ok(())
        });
        read.is_ok() && nothing
    }

    /// Returns the format that it came from.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the model that it is bound to; `None` if it is bound to its format only, or the model is not known.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the JSON object as it came.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns whether a request in this format to this model takes it back. Data without a model fits every model.
    #[must_use]
    pub fn fits(&self, format: Format, model: Option<&str>) -> bool {
        let same_model = self.model().zip(model).is_none_or(|(from, to)| from == to);
        self.format == format && same_model
    }
}

// ProviderState JSON can hold reasoning, which stays out of logs.
impl fmt::Debug for ProviderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderState")
            .field("format", &self.format)
            .field("model", &self.model)
            .field("bytes", &self.json.len())
            .finish()
    }
}
