//! [`Format`]: the list of wire formats, the one place that maps a name to its module.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use std::fmt;
use std::str::FromStr;

use crate::wire::decode::{DecodeOptions, Decoder};
use crate::wire::encode::{EncodeError, EncodeOptions, Encoded, WireTool};
use crate::wire::history::Message;

/// A wire format.
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
    /// Gemini; written only.
    Gemini,
}

impl Format {
    /// Every format.
    pub const ALL: &[Self] = &[Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Ollama, Self::Gemini];

    /// The name that records and fixtures use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => openai_chat::NAME,
            Self::OpenAiResponses => openai_responses::NAME,
            Self::Anthropic => anthropic::NAME,
            Self::Ollama => ollama::NAME,
            Self::Gemini => gemini::NAME,
        }
    }

    /// A decoder for one response; nothing for a format that is only written.
    #[must_use]
    pub fn decoder(self, options: DecodeOptions) -> Option<Decoder> {
        match self {
            Self::OpenAiChat => Some(openai_chat::decoder(options)),
            Self::OpenAiResponses => Some(openai_responses::decoder(options)),
            Self::Anthropic => Some(anthropic::decoder(options)),
            Self::Ollama => Some(ollama::decoder(options)),
            Self::Gemini => None,
        }
    }

    /// The parts of a request body that offer the tools.
    pub fn encode_tools<'a, T: Into<WireTool<'a>>>(
        self,
        tools: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Encoded, EncodeError> {
        match self {
            Self::OpenAiChat => openai_chat::encode_tools(tools, options),
            Self::OpenAiResponses => openai_responses::encode_tools(tools, options),
            Self::Anthropic => anthropic::encode_tools(tools, options),
            Self::Ollama => ollama::encode_tools(tools, options),
            Self::Gemini => gemini::encode_tools(tools, options),
        }
    }

    /// The parts of a request body that hold the history.
    #[must_use]
    pub fn encode_messages(self, history: &[Message]) -> serde_json::Map<String, serde_json::Value> {
        match self {
            Self::OpenAiChat => openai_chat::encode_messages(history),
            Self::OpenAiResponses => openai_responses::encode_messages(history),
            Self::Anthropic => anthropic::encode_messages(history),
            Self::Ollama => ollama::encode_messages(history),
            Self::Gemini => gemini::encode_messages(history),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown wire format; write one of")?;
        Format::ALL.iter().try_for_each(|format| write!(f, " `{format}`"))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Takes the name with `_` or `-`.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let name = text.replace('-', "_");
        Self::ALL.iter().copied().find(|format| format.as_str() == name).ok_or(UnknownFormat)
    }
}
