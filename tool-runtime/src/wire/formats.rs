//! The one place that maps each [`Format`] to its encoder and decoder.

mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod openai_chat;
mod openai_responses;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::wire::decode::Decoder;
use crate::wire::encode::{self, Dialect, EncodeError, EncodeOptions, Encoded, OfferedTools, WireTool};
use crate::wire::{Format, Message, Request, RequestInput, RequestSettings};

impl Format {
    /// Returns a decoder for one response, streamed or whole.
    ///
    /// ```
    /// use tool_runtime::wire::{FinishReason, Format};
    ///
    /// let mut decoder = Format::Gemini.decoder();
    /// decoder.push(br#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#);
    /// let decoded = decoder.finish();
    /// assert_eq!((decoded.text.as_str(), decoded.finish), ("Hi", FinishReason::Stop));
    /// ```
    #[must_use]
    pub fn decoder(self) -> Decoder {
        match self {
            Self::OpenAiChat => Decoder::new(openai_chat::Decode::default()),
            Self::OpenAiResponses => Decoder::new(openai_responses::Decode::default()),
            Self::Anthropic => Decoder::new(anthropic::Decode::default()),
            Self::Ollama => Decoder::new(ollama::Decode::default()),
            Self::Gemini => Decoder::new(gemini::Decode::default()),
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
    /// The format cannot express a tool's name, schema or description, or the tool choice; or two tools have the same
    /// name. With [`leave_out_unsupported`](EncodeOptions::leave_out_unsupported), [`Encoded::losses`] reports these
    /// instead. With this option, too, more tools than [`provider_limits`](EncodeOptions::provider_limits) allows and a
    /// choice that names a tool that is not offered are errors.
    pub fn encode_tools<'a, T: Into<WireTool<'a>>>(
        self,
        tools: impl IntoIterator<Item = T>,
        options: &EncodeOptions,
    ) -> Result<Encoded, EncodeError> {
        encode::encode_tools(self.dialect(), tools, options)
    }

    /// Returns the parts of a request body that carry the settings, extra fields included; see [`RequestSettings`].
    /// [`encode_tools`](Self::encode_tools) writes the tool choice and the limit to one call.
    ///
    /// A setting that the format has but `model` refuses is left out and reported, or written in the form that the
    /// model accepts. With `None`, no rule of a single model applies.
    ///
    /// # Errors
    /// A setting has a value that no provider accepts, an extra field would override another part of the body, or the
    /// extra fields have more than 64 KiB.
    pub fn encode_settings(self, settings: &RequestSettings, model: Option<&str>) -> Result<Encoded, EncodeError> {
        encode::encode_settings(self.dialect(), settings, model)
    }

    /// Returns the parts of a request body that hold the history, such as `messages` and `system`.
    ///
    /// Provider state of this format is sent back unchanged and in its place, unless it is bound to a model other than
    /// `model`, as signed reasoning is. `None` keeps the provider state of every model. A call without a result gets
    /// the result `outcome_unknown`; see [`Message::repair`](crate::wire::Message::repair).
    #[must_use]
    pub fn encode_messages(self, history: &[Message], model: Option<&str>) -> Encoded<BTreeMap<String, Box<RawValue>>> {
        encode::encode_messages(self, self.dialect(), history, model)
    }

    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
    /// Returns a whole request body, except the fields that belong to the endpoint.
    pub(crate) fn encode_request<'p>(
        self,
        tools: &'p OfferedTools,
        asked: &RequestInput<'_>,
    ) -> Result<Request<'p>, EncodeError> {
        encode::encode_request(self, self.dialect(), tools, asked)
    }

    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "whole requests are written for the HTTP client"))]
    /// The token limit that a request of this format must contain; `None` if the format requires none.
    pub(crate) fn limit(self, settings: &RequestSettings, model: &str, is_streamed: bool) -> Option<u32> {
        (self == Self::Anthropic).then(|| anthropic::limit(settings, model, is_streamed))
    }

    /// Returns the encoder of the format.
    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiChat => &openai_chat::Encode,
            Self::OpenAiResponses => &openai_responses::Encode,
            Self::Anthropic => &anthropic::Encode,
            Self::Ollama => &ollama::Encode,
            Self::Gemini => &gemini::Encode,
        }
    }
}
