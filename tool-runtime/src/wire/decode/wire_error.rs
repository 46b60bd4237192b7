//! [`WireError`]: the reason why a response failed.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::cut;

/// The reason why a response failed.
///
/// ```
/// use tool_runtime::wire::Format;
///
/// let mut decoder = Format::OpenAiChat.decoder();
/// decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n");
/// // The connection breaks.
/// let decoded = decoder.finish();
/// assert_eq!(decoded.error.map(|error| error.code()), Some("truncated_stream"));
/// assert_eq!(decoded.text, "Hel");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WireError {
    pub(crate) kind: WireErrorKind,
    /// The provider's text, for operators. For `unsupported_item`, the type of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(rename = "code", default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_code: Option<ErrorCode>,
}

/// The maximum number of bytes to keep of a provider's message.
const MESSAGE: usize = 16 << 10;

impl WireError {
    pub(crate) const fn new(kind: WireErrorKind) -> Self {
        Self { kind, message: None, provider_code: None }
    }

    /// The provider waits for the client to act on an item that is not a tool call.
    pub(crate) fn unsupported_item(kind: &'static str) -> Self {
        Self { kind: WireErrorKind::UnsupportedItem, message: Some(kind.to_owned()), provider_code: None }
    }

    pub(crate) fn provider(message: &str, code: Option<ErrorCode>) -> Self {
        let message = cut(message, MESSAGE).to_owned();
        let provider_code = code.filter(|code| !matches!(code, ErrorCode::Text(code) if code.len() > MESSAGE));
        Self { kind: WireErrorKind::ProviderError, message: Some(message), provider_code }
    }

    /// Returns the stable code: `provider_error`, `truncated_stream`, `malformed_frame`, `protocol_violation`,
    /// `limit_exceeded` or `unsupported_item`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self.kind {
            WireErrorKind::ProviderError => "provider_error",
            WireErrorKind::TruncatedStream => "truncated_stream",
            WireErrorKind::MalformedFrame => "malformed_frame",
            WireErrorKind::ProtocolViolation => "protocol_violation",
            WireErrorKind::LimitExceeded => "limit_exceeded",
            WireErrorKind::UnsupportedItem => "unsupported_item",
        }
    }

    /// Returns the error code that the provider sent, a word or a number; `None` if it sent none.
    #[must_use]
    pub fn provider_code(&self) -> Option<Cow<'_, str>> {
        Some(match self.provider_code.as_ref()? {
            ErrorCode::Text(code) => Cow::Borrowed(code.as_str()),
            ErrorCode::Number(code) => Cow::Owned(code.to_string()),
        })
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            WireErrorKind::ProviderError => "the provider reported an error",
            WireErrorKind::TruncatedStream => "the response ended before the turn did",
            WireErrorKind::MalformedFrame => "the response holds a frame that is not JSON",
            WireErrorKind::ProtocolViolation => "the response breaks the rules of its format",
            WireErrorKind::LimitExceeded => "the response is larger than the decoder's limits",
            // The message is a word that the decoder knows, not text of the provider.
            WireErrorKind::UnsupportedItem => {
                let item = self.message.as_deref().unwrap_or_default();
                return write!(f, "the response waits for an action that is not supported: `{item}`");
            }
        })
    }
}

impl std::error::Error for WireError {}

/// The kinds of [`WireError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireErrorKind {
    /// The provider reported an error.
    ProviderError,
    /// The bytes ended early.
    TruncatedStream,
    /// A frame is not JSON, not UTF-8, or has an object that repeats a key that the decoder reads.
    MalformedFrame,
    /// Frames came in an order or with a meaning that the format does not define.
    ProtocolViolation,
    /// More bytes, calls, parts or provider state than the decoder allows, or a longer frame.
    LimitExceeded,
    /// The client has to act on an item that is not a tool call, such as `mcp_approval_request`; the message names it.
    UnsupportedItem,
}

/// A provider's error code: some providers write text, some a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ErrorCode {
    /// A word.
    Text(String),
    /// A number.
    Number(i64),
}
