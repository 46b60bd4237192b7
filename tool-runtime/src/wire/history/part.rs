//! [`Part`]: the parts of a model's turn.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::history::{CallMessage, Media, ProviderState};

/// One part of a model's turn.
///
/// ```
/// use tool_runtime::wire::history::{CallMessage, Part, TextPart};
///
/// let turn = [
///     Part::Reasoning(TextPart::new("The user wants a sum.")),
///     Part::text("Let me see."),
///     Part::Call(CallMessage::new("call_1", "core__add", r#"{"a":1,"b":2}"#)),
/// ];
/// assert_eq!(turn.iter().filter_map(Part::as_text).collect::<Vec<_>>(), ["Let me see."]);
/// assert_eq!(turn[2].as_call().map(|call| call.name.as_str()), Some("core__add"));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(TextPart),
    /// Reasoning.
    Reasoning(TextPart),
    /// A call.
    Call(CallMessage),
    /// An image, audio or a file that the model made.
    Media(Media),
    /// A source of the text before it.
    Citation(Citation),
    /// The words with which the model refused.
    Refusal(String),
    /// A block that only its provider understands.
    ProviderState(ProviderState),
}

impl Part {
    /// Creates text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// Returns the text of a text part or a refusal; `None` for other parts.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(part.text()),
            Self::Refusal(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the call; `None` for other parts.
    #[must_use]
    pub const fn as_call(&self) -> Option<&CallMessage> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the provider state of the part; `None` if it has none.
    #[must_use]
    pub fn provider_state(&self) -> Option<&ProviderState> {
        match self {
            Self::Text(part) | Self::Reasoning(part) => part.provider_state(),
            Self::Call(call) => call.provider_state(),
            Self::ProviderState(provider_state) => Some(provider_state),
            Self::Media(_) | Self::Citation(_) | Self::Refusal(_) => None,
        }
    }
}

/// Text or reasoning of a model.
///
/// [`Part`] has an example.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_state: Option<ProviderState>,
}

impl TextPart {
    /// Creates text without provider state.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), provider_state: None }
    }

    pub(crate) fn with_provider_state(mut self, provider_state: Option<ProviderState>) -> Self {
        self.provider_state = provider_state;
        self
    }

    /// Returns the text. It is empty for reasoning that is encrypted only.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the data that its provider wants back with it, such as an id or a signature; `None` if there is none.
    #[must_use]
    pub const fn provider_state(&self) -> Option<&ProviderState> {
        self.provider_state.as_ref()
    }
}

/// A source of a model's text.
///
/// [`Part`] has an example of a turn.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Citation {
    /// The title of the source. `None` if the provider names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The address of the source. `None` for a document that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The words that are cited. `None` if the provider does not quote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

// Text, reasoning and sources stay out of logs.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(part) => part.fmt(f),
            Self::Reasoning(part) => f.debug_tuple("Reasoning").field(part).finish(),
            Self::Call(call) => call.fmt(f),
            Self::Media(media) => media.fmt(f),
            Self::Citation(citation) => citation.fmt(f),
            Self::Refusal(text) => f.debug_struct("Refusal").field("bytes", &text.len()).finish_non_exhaustive(),
            Self::ProviderState(provider_state) => provider_state.fmt(f),
        }
    }
}

impl fmt::Debug for TextPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextPart")
            .field("bytes", &self.text.len())
            .field("provider_state", &self.provider_state)
            .finish()
    }
}

impl fmt::Debug for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Citation").finish_non_exhaustive()
    }
}
