//! [`Protocol`]: the supported UI protocols. This file maps each of them to its module.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::wire::ui::frame::Frame;
use crate::wire::ui::{ag_ui, assistant_transport, data_stream, message_stream};

/// A protocol of a chat UI.
///
/// ```
/// use tool_runtime::wire::ui::Protocol;
///
/// let protocol: Protocol = "ui-message-stream".parse()?;
/// assert_eq!(protocol, Protocol::UiMessageStream);
/// assert_eq!(protocol.content_type(), "text/event-stream");
/// assert!(protocol.headers().contains(&("x-vercel-ai-ui-message-stream", "v1")));
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Lines for the `assistant-stream` package.
    DataStream,
    /// Server-sent events for the `assistant-stream` package.
    AssistantTransport,
    /// Server-sent events for the `ai` package of the AI SDK.
    UiMessageStream,
    /// Server-sent events of AG-UI for the `@ag-ui/client` package.
    AgUi,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: &[Self] = &[Self::DataStream, Self::AssistantTransport, Self::UiMessageStream, Self::AgUi];

    /// Returns the name that fixtures and the command line use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DataStream => data_stream::NAME,
            Self::AssistantTransport => assistant_transport::NAME,
            Self::UiMessageStream => message_stream::NAME,
            Self::AgUi => ag_ui::NAME,
        }
    }

    /// Returns the content type of the response.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::DataStream => "text/plain; charset=utf-8",
            Self::AssistantTransport | Self::UiMessageStream | Self::AgUi => "text/event-stream",
        }
    }

    /// Returns the headers of the response other than the content type. Depending on the protocol, they identify it to
    /// clients, forbid caching, and keep proxies from buffering the response.
    #[must_use]
    pub const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::DataStream => &[("x-vercel-ai-data-stream", "v1")],
            Self::AssistantTransport => &[("cache-control", "no-cache")],
            Self::AgUi => &[("cache-control", "no-cache"), ("x-accel-buffering", "no")],
            Self::UiMessageStream => {
                &[("cache-control", "no-cache"), ("x-vercel-ai-ui-message-stream", "v1"), ("x-accel-buffering", "no")]
            }
        }
    }

    /// Whether a response can update calls that an earlier response announced.
    pub(super) const fn updates_in_place(self) -> bool {
        matches!(self, Self::UiMessageStream | Self::AgUi)
    }

    pub(super) fn write(self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        match self {
            Self::DataStream => data_stream::write(frame, out),
            Self::AssistantTransport => assistant_transport::write(frame, out),
            Self::UiMessageStream => message_stream::write(frame, out),
            Self::AgUi => ag_ui::write(frame, out),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let unknown = || {
            ParseError::none_of("unknown_protocol", "UI protocol", Self::ALL.iter().map(|protocol| protocol.as_str()))
        };
        Self::ALL.iter().copied().find(|protocol| protocol.as_str() == text).ok_or_else(unknown)
    }
}
