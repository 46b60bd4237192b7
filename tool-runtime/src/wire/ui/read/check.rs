//! Checks a history that a client sent.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::CallId;
use crate::media::{MAX_BYTES, Media};
use crate::wire::history::{CallMessage, Content, Message, Part, ResultMessage};
use crate::wire::ui::read::ChatErrorKind;

/// The maximum number of messages in a history.
pub(super) const MAX_MESSAGES: usize = 2048;

/// The maximum number of bytes of one text or result.
const MAX_CONTENT_BYTES: usize = 32 << 10;

/// The party that answers a call which the server issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResultSource {
    /// The client, which may send one result.
    Client,
    /// The server, which has no result yet.
    Pending,
    /// The server, in an earlier turn. The client's copy of the result is not compared.
    Ended,
    /// The server, with this result, which the client's copy must equal.
    Given(ResultMessage),
}

/// Returns the kind of the first defect and the index of its message. The index is `None` if the history is too large.
pub(super) fn find(
    history: &[Message],
    issued: &BTreeMap<CallId, (CallMessage, ResultSource)>,
) -> Result<(), (ChatErrorKind, Option<usize>)> {
    const TOO_LARGE: (ChatErrorKind, Option<usize>) = (ChatErrorKind::HistoryTooLarge, None);
    if history.len() > MAX_MESSAGES {
        return Err(TOO_LARGE);
    }
    let mut called = BTreeSet::new();
    let mut answered = BTreeSet::new();
    let mut open = BTreeSet::new();
    let mut media_bytes = 0_usize;
    for (at, message) in history.iter().enumerate() {
        let error = |kind| Err((kind, Some(at)));
        if texts(message).any(|text| text.len() > MAX_CONTENT_BYTES) {
            return Err(TOO_LARGE);
        }
        media_bytes = media(message).fold(media_bytes, |bytes, media| bytes.saturating_add(media.size()));
        if media_bytes > MAX_BYTES {
            return Err(TOO_LARGE);
        }
        match message {
            Message::System(_) | Message::User(_) => open.clear(),
            Message::Assistant(parts) => {
                open.clear();
                // Clients never get provider state, so they cannot return it.
                if parts.iter().any(|part| part.provider_state().is_some()) {
                    return error(ChatErrorKind::Forged);
                }
                for call in message.calls() {
                    if !called.insert(&call.id) {
                        return error(ChatErrorKind::Duplicate);
                    }
                    if !issued.get(&call.id).is_some_and(|(issued, _)| issued.means(call)) {
                        return error(ChatErrorKind::Forged);
                    }
                    open.insert(&call.id);
                }
            }
            Message::Result(result) => {
                if !answered.insert(&result.id) {
                    return error(ChatErrorKind::Duplicate);
                }
                if !open.contains(&result.id) {
                    return error(ChatErrorKind::Orphan);
                }
                match issued.get(&result.id).map(|(_, answer)| answer) {
                    // Only tools of the server return files.
                    Some(ResultSource::Client | ResultSource::Ended) if result.media.is_empty() => {}
                    Some(ResultSource::Given(given))
                        if given.content == result.content && given.media == result.media => {}
                    _ => return error(ChatErrorKind::Forged),
                }
            }
        }
    }
    Ok(())
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

/// The texts of a part. Arguments are not among them: they are compared with those of the issued call.
fn texts_of(part: &Part) -> impl Iterator<Item = &str> {
    let citation = if let Part::Citation(citation) = part { Some(citation) } else { None };
    let sources = citation.into_iter().flat_map(|from| [&from.title, &from.url, &from.quote]);
    let thoughts = if let Part::Reasoning { text, .. } = part { Some(text.as_str()) } else { None };
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
