//! [`DisplayEvent`]: the parts of an arriving response to show. No call runs from a display event.

use std::borrow::Cow;
use std::fmt;

use crate::call::CallId;

/// A piece of an answer, for display while it arrives. Only [`Decoder::finish`](crate::wire::Decoder::finish) returns
/// calls that may run.
///
/// ```
/// use tool_runtime::wire::{DisplayEvent, Format};
///
/// let mut decoder = Format::OpenAiChat.decoder();
/// for event in decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n") {
///     match event {
///         DisplayEvent::Text(text) => assert_eq!(text, "Hi"),
///         DisplayEvent::CallStarted { name, .. } => println!("the model writes a call of {name}"),
///         _ => {}
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisplayEvent<'a> {
    /// Text of the model.
    Text(Cow<'a, str>),
    /// Reasoning of the model that its provider marks as showable.
    Reasoning(Cow<'a, str>),
    /// The id and the name of a call are final. Sent once for each call, before its argument text.
    CallStarted {
        /// The id of the call and of its result.
        id: CallId,
        /// The name as the model wrote it.
        name: Cow<'a, str>,
    },
    /// More argument text of a call. It can contain sensitive values.
    ArgumentsDelta {
        /// The id of the call.
        id: CallId,
        /// The text.
        text: Cow<'a, str>,
    },
}

impl DisplayEvent<'_> {
    /// Returns the same event without a borrow.
    #[must_use]
    pub fn into_owned(self) -> DisplayEvent<'static> {
        match self {
            Self::Text(text) => DisplayEvent::Text(Cow::Owned(text.into_owned())),
            Self::Reasoning(text) => DisplayEvent::Reasoning(Cow::Owned(text.into_owned())),
            Self::CallStarted { id, name } => DisplayEvent::CallStarted { id, name: Cow::Owned(name.into_owned()) },
            Self::ArgumentsDelta { id, text } => {
                DisplayEvent::ArgumentsDelta { id, text: Cow::Owned(text.into_owned()) }
            }
        }
    }
}

// Reasoning and argument text stay out of logs, so `Debug` shows only their lengths.
impl fmt::Debug for DisplayEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Reasoning(text) => f.debug_struct("Reasoning").field("bytes", &text.len()).finish(),
            Self::CallStarted { id, name } => {
                f.debug_struct("CallStarted").field("id", id).field("name", name).finish()
            }
            Self::ArgumentsDelta { id, text } => {
                f.debug_struct("ArgumentsDelta").field("id", id).field("bytes", &text.len()).finish()
            }
        }
    }
}
