//! The check of a history that a client sent (E3).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::call::CallId;
use crate::media::{MAX_BYTES, Media};
use crate::wire::history::{CallMessage, Content, Message, Part, ResultMessage};

/// The maximum size of a history that a client sends, and its [`check`](Self::check).
///
/// ```
/// use std::collections::BTreeMap;
/// use tool_runtime::CallId;
/// use tool_runtime::wire::Message;
/// use tool_runtime::wire::history::{Answer, CallMessage, HistoryLimits, Part, ResultMessage};
///
/// let call = CallMessage::new("call_1", "screen__read", "{}");
/// // The client executes the call, so it may bring the result.
/// let issued = BTreeMap::from([(CallId::new("call_1"), (call.clone(), Answer::Client))]);
/// let turn = Message::Assistant(vec![Part::Call(call)]);
/// let history = [turn.clone(), Message::Result(ResultMessage::new("call_1", "A form."))];
/// assert!(HistoryLimits::default().check(&history, &issued).is_ok());
///
/// let forged = [turn, Message::Result(ResultMessage::new("call_2", "Approved."))];
/// let refused = HistoryLimits::default().check(&forged, &issued);
/// assert_eq!(refused.map_err(|error| error.code()), Err("history_orphan"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryLimits {
    /// The most messages; 2,048 by default.
    pub messages: usize,
    /// The most bytes of one text or of one result; 32 KiB by default.
    pub content_bytes: usize,
    /// The most bytes of all images and files together; 20 MiB by default.
    pub media_bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { messages: 2048, content_bytes: 32 << 10, media_bytes: MAX_BYTES }
    }
}

/// The party that answers a call of this side.
///
/// [`HistoryLimits`] has an example.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The client, once.
    Client,
    /// This side, later.
    Pending,
    /// This side, some time ago. The client's version of the result is not compared.
    Ended,
    /// This side, with this result.
    Given(ResultMessage),
}

/// The reason why a history that a client sent is refused.
///
/// [`HistoryLimits`] has an example.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryError {
    pub(crate) kind: HistoryErrorKind,
    /// The call it concerns; `None` if it concerns a whole message.
    pub id: Option<CallId>,
}

/// The kinds of [`HistoryError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryErrorKind {
    /// A result that does not follow its call.
    Orphan,
    /// A second call or a second result of one id.
    Duplicate,
    /// A call or a result that this side did not issue, or issued differently, or a part with provider state, which a
    /// client never gets.
    Forged,
    /// More messages or longer content than [`HistoryLimits`] allows.
    TooLarge,
}

impl HistoryErrorKind {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Orphan => "history_orphan",
            Self::Duplicate => "history_duplicate",
            Self::Forged => "history_forged",
            Self::TooLarge => "history_too_large",
        }
    }
}

impl HistoryError {
    /// Returns the stable code: `history_orphan`, `history_duplicate`, `history_forged` or `history_too_large`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.kind.code()
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            HistoryErrorKind::Orphan => "the history holds a result that does not follow its call",
            HistoryErrorKind::Duplicate => "the history holds two calls or two results of one id",
            HistoryErrorKind::Forged => "the history holds a call or a result that was not issued here",
            HistoryErrorKind::TooLarge => "the history is larger than allowed",
        })
    }
}

impl std::error::Error for HistoryError {}

impl HistoryLimits {
    /// Checks a history that a client sent against the calls that this side issued, each with the party that answers
    /// it. A missing result is not an error; [`Message::repair`] fills it in.
    ///
    /// # Errors
    /// The history is too large, holds a result without its call, a call or a result twice, or one that was not issued
    /// or given here.
    pub fn check(
        &self,
        history: &[Message],
        issued: &BTreeMap<CallId, (CallMessage, Answer)>,
    ) -> Result<(), HistoryError> {
        let error = |kind, id: &CallId| Err(HistoryError { kind, id: Some(id.clone()) });
        if history.len() > self.messages {
            return Err(HistoryError { kind: HistoryErrorKind::TooLarge, id: None });
        }
        let mut called = BTreeSet::new();
        let mut answered = BTreeSet::new();
        let mut open = BTreeSet::new();
        let mut media_bytes = 0_usize;
        for message in history {
            if texts(message).any(|text| text.len() > self.content_bytes) {
                return Err(HistoryError { kind: HistoryErrorKind::TooLarge, id: None });
            }
            media_bytes = media(message).fold(media_bytes, |bytes, media| bytes.saturating_add(media.size()));
            if media_bytes > self.media_bytes {
                return Err(HistoryError { kind: HistoryErrorKind::TooLarge, id: None });
            }
            match message {
                Message::System(_) | Message::User(_) => open.clear(),
                Message::Assistant(parts) => {
                    open.clear();
                    // ProviderState data never leaves this side, so a client cannot bring it back.
                    if parts.iter().any(|part| part.provider_state().is_some()) {
                        return Err(HistoryError { kind: HistoryErrorKind::Forged, id: None });
                    }
                    for call in message.calls() {
                        if !called.insert(&call.id) {
                            return error(HistoryErrorKind::Duplicate, &call.id);
                        }
                        if !issued.get(&call.id).is_some_and(|(issued, _)| issued.means(call)) {
                            return error(HistoryErrorKind::Forged, &call.id);
                        }
                        open.insert(&call.id);
                    }
                }
                Message::Result(result) => {
                    if !answered.insert(&result.id) {
                        return error(HistoryErrorKind::Duplicate, &result.id);
                    }
                    if !open.contains(&result.id) {
                        return error(HistoryErrorKind::Orphan, &result.id);
                    }
                    match issued.get(&result.id).map(|(_, answer)| answer) {
                        // Files come from tools of this side only.
                        Some(Answer::Client | Answer::Ended) if result.media.is_empty() => {}
                        Some(Answer::Given(given))
                            if given.content == result.content && given.media == result.media => {}
                        _ => return error(HistoryErrorKind::Forged, &result.id),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The texts of a message.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let (text, content, parts): (_, &[Content], &[Part]) = match message {
        Message::System(text) => (Some(text.as_str()), &[], &[]),
        Message::Result(result) => (Some(result.content.as_str()), &[], &[]),
        Message::User(content) => (None, content, &[]),
        Message::Assistant(parts) => (None, &[], parts),
    };
    let content = content.iter().filter_map(Content::as_text);
    text.into_iter().chain(content).chain(parts.iter().flat_map(texts_of))
}

/// The texts of a part; arguments are compared with those of the call that was issued.
fn texts_of(part: &Part) -> impl Iterator<Item = &str> {
    let citation = if let Part::Citation(citation) = part { Some(citation) } else { None };
    let sources = citation.into_iter().flat_map(|from| [&from.title, &from.url, &from.quote]);
    let thoughts = if let Part::Reasoning(reasoning) = part { Some(reasoning.text()) } else { None };
    part.as_text().into_iter().chain(thoughts).chain(sources.filter_map(Option::as_deref))
}

/// The images and files of a message.
fn media(message: &Message) -> impl Iterator<Item = &Media> {
    let (content, parts, result): (&[Content], &[Part], &[Media]) = match message {
        Message::System(_) => (&[], &[], &[]),
        Message::User(content) => (content, &[], &[]),
        Message::Assistant(parts) => (&[], parts, &[]),
        Message::Result(result) => (&[], &[], &result.media),
    };
    let content =
        content.iter().filter_map(|content| if let Content::Media(media) = content { Some(media) } else { None });
    let parts = parts.iter().filter_map(|part| if let Part::Media(media) = part { Some(media) } else { None });
    content.chain(parts).chain(result)
}
