//! [`Format`]: the supported wire formats.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ParseError;

/// A wire format: how a provider writes requests and responses. It encodes tools, settings and histories, and makes
/// decoders.
///
/// ```
/// use tool_runtime::wire::{Format, Message};
///
/// let format: Format = "openai-chat".parse()?;
/// let request = format.encode_messages(&[Message::user("Hi!")], None);
/// assert!(request.body["messages"].get().contains(r#""content":"Hi!""#));
///
/// let mut decoder = format.decoder();
/// decoder.push(br#"{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}"#);
/// assert_eq!(decoder.finish().text, "Hello.");
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// OpenAI Chat Completions and compatible servers.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Ollama `/api/chat`.
    Ollama,
    /// Gemini `generateContent`.
    Gemini,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Ollama, Self::Gemini];

    /// Returns the name that records and fixtures use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = ParseError;

    /// Takes a name of [`as_str`](Self::as_str), with `_` or `-` between its words.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let name = text.replace('-', "_");
        let unknown =
            || ParseError::none_of("unknown_format", "wire format", Self::ALL.iter().map(|format| format.as_str()));
        Self::ALL.iter().copied().find(|format| format.as_str() == name).ok_or_else(unknown)
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
