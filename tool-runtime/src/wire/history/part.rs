//! [`Part`]: the parts of a model's turn.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::history::{CallMessage, Media, ProviderState};

/// One part of a model's turn.
///
/// ```
/// use tool_runtime::wire::history::{CallMessage, Part};
///
/// let turn = [
///     Part::reasoning("The user wants a sum."),
///     Part::text("Let me see."),
///     Part::Call(CallMessage::new("call_1", "core__add", r#"{"a":1,"b":2}"#)),
/// ];
/// assert_eq!(turn.iter().filter_map(Part::as_text).collect::<Vec<_>>(), ["Let me see."]);
/// assert!(matches!(&turn[0], Part::Reasoning { text, .. } if text == "The user wants a sum."));
/// assert_eq!(turn[2].as_call().map(|call| call.name.as_str()), Some("core__add"));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Part {
    /// Text. [`Part::text`] creates one without provider state.
    #[non_exhaustive]
    Text {
        /// The text.
        text: String,
        /// Data that the provider wants back with this text, such as an id or a signature; `None` if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
    },
    /// Reasoning. [`Part::reasoning`] creates one without provider state.
    #[non_exhaustive]
    Reasoning {
        /// The text. It is empty if the reasoning is only available encrypted.
        text: String,
        /// Data that the provider wants back with this reasoning, such as an id or a signature; `None` if there is
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<ProviderState>,
    },
    /// A call.
    Call(CallMessage),
    /// An image, audio or a file that the model made.
    Media(Media),
    /// A source for the text before it.
    Citation(Citation),
    /// The text with which the model refused.
    Refusal(String),
    /// Provider data that belongs to no other part. It is sent back to its provider unchanged.
    ProviderState(ProviderState),
}

impl Part {
    /// Creates text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), provider_state: None }
    }

    /// Creates reasoning.
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning { text: text.into(), provider_state: None }
    }

    /// Returns the text of a text part or a refusal; `None` for other parts.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } | Self::Refusal(text) => Some(text),
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
            Self::Text { provider_state, .. } | Self::Reasoning { provider_state, .. } => provider_state.as_ref(),
            Self::Call(call) => call.provider_state(),
            Self::ProviderState(provider_state) => Some(provider_state),
            Self::Media(_) | Self::Citation(_) | Self::Refusal(_) => None,
        }
    }
}

/// A source of a model's text.
///
/// [`Part`] has an example of a turn.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Citation {
    /// The title of the source; `None` if the provider names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The URL of the source; `None` for a document without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The cited words; `None` if the provider does not quote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
}

// Text, reasoning and sources stay out of logs.
impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, provider_state } => debug(f, "Text", text, provider_state.as_ref()),
            Self::Reasoning { text, provider_state } => debug(f, "Reasoning", text, provider_state.as_ref()),
            Self::Call(call) => call.fmt(f),
            Self::Media(media) => media.fmt(f),
            Self::Citation(citation) => citation.fmt(f),
            Self::Refusal(text) => f.debug_struct("Refusal").field("bytes", &text.len()).finish_non_exhaustive(),
            Self::ProviderState(provider_state) => provider_state.fmt(f),
        }
    }
}

fn debug(f: &mut fmt::Formatter<'_>, name: &str, text: &str, provider_state: Option<&ProviderState>) -> fmt::Result {
    f.debug_struct(name).field("bytes", &text.len()).field("provider_state", &provider_state).finish()
}

impl fmt::Debug for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Citation").finish_non_exhaustive()
    }
}
