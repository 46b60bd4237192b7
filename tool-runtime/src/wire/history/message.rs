//! [`Message`]: one message of a conversation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::history::{CallMessage, Media, Part, ResultMessage};

/// One message of a conversation, independent of a provider.
///
/// ```
/// use tool_runtime::wire::{Format, Message};
/// use tool_runtime::wire::history::{CallMessage, Part, ResultMessage};
///
/// let history = [
///     Message::user("What is 1 + 2?"),
///     Message::Assistant(vec![Part::Call(CallMessage::new("call_1", "core__add", r#"{"a":1,"b":2}"#))]),
///     Message::Result(ResultMessage::new("call_1", "3")),
/// ];
/// let encoded = Format::OpenAiChat.encode_messages(&history, None);
/// assert!(encoded.body["messages"].get().contains(r#""role":"tool""#));
/// assert!(encoded.losses.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// Instructions.
    System(String),
    /// The user's text and files.
    User(Vec<Content>),
    /// A turn of the model: its parts, in order.
    Assistant(Vec<Part>),
    /// The result of one call.
    Result(ResultMessage),
}

impl Message {
    /// Creates a user message that contains only text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Content::Text(text.into())])
    }

    /// Creates a turn of the model that contains only text.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(vec![Part::text(text)])
    }

    /// Returns the text of the message; its parts are separated by an empty line. Reasoning, calls and files are left
    /// out.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::System(text) => text.clone(),
            Self::User(content) => joined(content.iter().filter_map(Content::as_text)),
            Self::Assistant(parts) => joined(parts.iter().filter_map(Part::as_text)),
            Self::Result(result) => result.content.clone(),
        }
    }

    /// Returns the calls of a turn of the model, in order.
    pub fn calls(&self) -> impl Iterator<Item = &CallMessage> {
        let parts = if let Self::Assistant(parts) = self { parts.as_slice() } else { &[] };
        parts.iter().filter_map(Part::as_call)
    }
}

/// One piece of a user's message.
///
/// ```
/// use tool_runtime::media::Media;
/// use tool_runtime::wire::Message;
/// use tool_runtime::wire::history::Content;
///
/// let plan = Media::url("image/png", "https://example.com/plan.png")?;
/// let message = Message::User(vec![Content::Text("What is this?".to_owned()), Content::Media(plan)]);
/// assert_eq!(message.text(), "What is this?");
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, audio or a file.
    Media(Media),
}

impl Content {
    /// Returns the text; `None` for media.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Media(_) => None,
        }
    }
}

// The user's texts stay out of logs.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.debug_struct("Text").field("bytes", &text.len()).finish_non_exhaustive(),
            Self::Media(media) => f.debug_tuple("Media").field(media).finish(),
        }
    }
}

/// Texts with an empty line between them.
pub(crate) fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}
