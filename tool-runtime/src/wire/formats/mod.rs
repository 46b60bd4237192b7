//! [`Format`]: the wire formats, and the one place that maps each to its encoder and decoder.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod openai_chat;
mod openai_responses;

use std::fmt;
use std::str::FromStr;

use crate::wire::RequestSettings;
use crate::wire::decode::{DecodeOptions, Decoder};
use crate::wire::encode::{self, Dialect, EncodeError, EncodeOptions, Encoded, WireTool};
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
    /// Gemini; encoded only.
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

    /// Returns a decoder for one response, streamed or whole; `None` for a format that is encoded only.
    ///
    /// ```
    /// use tool_runtime::wire::{DecodeOptions, Format};
    ///
    /// assert!(Format::Anthropic.decoder(DecodeOptions::default()).is_some());
    /// assert!(Format::Gemini.decoder(DecodeOptions::default()).is_none());
    /// ```
    #[must_use]
    pub fn decoder(self, options: DecodeOptions) -> Option<Decoder> {
        match self {
            Self::OpenAiChat => Some(Decoder::new(openai_chat::Decode::default(), options)),
            Self::OpenAiResponses => Some(Decoder::new(openai_responses::Decode::default(), options)),
            Self::Anthropic => Some(Decoder::new(anthropic::Decode::default(), options)),
            Self::Ollama => Some(Decoder::new(ollama::Decode, options)),
            Self::Gemini => None,
        }
    }

    /// Returns the parts of a request body that offer the tools, such as `tools` and `tool_choice`.
    ///
    /// ```
    /// use tool_runtime::wire::{EncodeOptions, Format, WireTool};
    ///
    /// let tool = WireTool::new("core__ping", "Answers.", r#"{"type":"object","properties":{}}"#);
    /// let encoded = Format::Anthropic.encode_tools([tool], &EncodeOptions::default())?;
    /// assert_eq!(encoded.body["tools"][0]["name"], "core__ping");
    /// # Ok::<(), tool_runtime::wire::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// A tool's name or schema, or the choice, cannot be expressed in the format. With
    /// [`OnUnsupported::LeaveOut`](crate::wire::OnUnsupported) such tools are reported in [`Encoded::losses`] instead.
    pub fn encode_tools<'a, T: Into<WireTool<'a>>>(
        self,
        tools: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Encoded, EncodeError> {
        encode::encode_tools(self.dialect(), tools, options)
    }

    /// Returns the parts of a request body that carry the settings, extra fields included; see [`RequestSettings`]. The
    /// choice of tools and the limit to one call are written with the tools.
    ///
    /// # Errors
    /// A setting has a value that no provider takes, or an extra field would override another part of the body.
    pub fn encode_settings(self, settings: &RequestSettings) -> Result<Encoded, EncodeError> {
        encode::encode_settings(self.dialect(), settings)
    }

    /// Returns the parts of a request body that hold the history, such as `messages` and `system`.
    ///
    /// A call without a result is answered with `outcome_unknown`; see [`repair`](crate::wire::history::repair).
    #[must_use]
    pub fn encode_messages(self, history: &[Message]) -> serde_json::Map<String, serde_json::Value> {
        encode::encode_messages(self.dialect(), history)
    }

    fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiChat => &openai_chat::Encode,
            Self::OpenAiResponses => &openai_responses::Encode,
            Self::Anthropic => &anthropic::Encode,
            Self::Ollama => &ollama::Encode,
            Self::Gemini => &gemini::Encode,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error of parsing a name that is not a [`Format`].
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
