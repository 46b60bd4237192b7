//! [`bounded`]: keeps the files of a history within one limit by leaving out the oldest.

use crate::media::{MAX_BYTES, Media, files};
use crate::wire::Format;
use crate::wire::history::{Content, Message, Part};

/// A history whose files fit into one request.
pub(crate) struct Bounded {
    pub(crate) messages: Vec<Message>,
    /// For each message that lost files, its index and the number of lost files.
    pub(crate) left_out: Vec<(usize, usize)>,
}

/// Leaves out the oldest files until the others have at most 20 MiB together; `None` if all of them fit. In messages of
/// users and tools, a sentence replaces the files. A turn of the model gets no sentence, because the model would take
/// it for its own words.
pub(crate) fn bounded(history: &[Message]) -> Option<Bounded> {
    let bytes = history.iter().map(bytes_of).fold(0, usize::saturating_add);
    let mut excess = bytes.checked_sub(MAX_BYTES).filter(|excess| *excess > 0)?;
    let mut left_out = Vec::new();
    let mut messages = Vec::with_capacity(history.len());
    for (at, message) in history.iter().enumerate() {
        let (message, files) = without_oldest(message, &mut excess);
        messages.push(message);
        left_out.extend((files > 0).then_some((at, files)));
    }
    Some(Bounded { messages, left_out })
}

fn bytes_of(message: &Message) -> usize {
    let size = |content: &Content| if let Content::Media(media) = content { media.size() } else { 0 };
    match message {
        Message::User(content) => content.iter().map(size).fold(0, usize::saturating_add),
        Message::Result(result) => result.media.iter().map(Media::size).fold(0, usize::saturating_add),
        Message::Assistant(parts) => {
            let size = |part: &Part| if let Part::Media(media) = part { media.size() } else { 0 };
            parts.iter().map(size).fold(0, usize::saturating_add)
        }
        Message::System(_) => 0,
    }
}

impl Message {
    /// Whether the message contains an image or a file as bytes.
    pub(crate) fn has_files(&self) -> bool {
        bytes_of(self) > 0
    }
}

/// The message without its oldest files, until there is no excess, and the number of files that were left out. URLs and
/// ids take no space, so they stay.
fn without_oldest(message: &Message, excess: &mut usize) -> (Message, usize) {
    let mut count = 0;
    let mut leaves = |media: &Media| {
        let leaves = *excess > 0 && media.size() > 0;
        if leaves {
            *excess = excess.saturating_sub(media.size());
            count += 1;
        }
        leaves
    };
    match message {
        Message::User(content) => {
            let (mut kept, mut place) = (Vec::with_capacity(content.len()), None);
            for one in content {
                match one {
                    Content::Media(media) if leaves(media) => place = place.or(Some(kept.len())),
                    other => kept.push(other.clone()),
                }
            }
            if let Some(place) = place {
                kept.insert(place, Content::Text(sentence(count)));
            }
            (Message::User(kept), count)
        }
        Message::Result(result) => {
            let mut result = result.clone();
            result.media.retain(|media| !leaves(media));
            if count > 0 {
                result.content.push_str("\n\n");
                result.content.push_str(&sentence(count));
            }
            (Message::Result(result), count)
        }
        Message::Assistant(parts) => {
            let (mut kept, mut rest) = (Vec::with_capacity(parts.len()), parts.iter().peekable());
            while let Some(part) = rest.next() {
                match part {
                    Part::Media(media) if leaves(media) => {
                        rest.next_if(|next| is_mark(next));
                    }
                    other => kept.push(other.clone()),
                }
            }
            (Message::Assistant(kept), count)
        }
        Message::System(_) => (message.clone(), 0),
    }
}

/// Whether a part is Gemini's state for the file before it. The provider would refuse the state without its file.
fn is_mark(part: &Part) -> bool {
    matches!(part, Part::ProviderState(provider_state) if provider_state.format() == Format::Gemini)
}

fn sentence(count: usize) -> String {
    let were = if count == 1 { "was" } else { "were" };
    let limit = MAX_BYTES >> 20;
    format!("[{} {were} left out: the files of one request may have {limit} MiB together.]", files(count))
}
