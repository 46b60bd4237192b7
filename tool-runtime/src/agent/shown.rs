//! The parts of a turn that are shown when it has ended: sources and files.

use std::collections::HashSet;

use uuid::Uuid;

use crate::call::Event;
use crate::media::Media;
use crate::wire::history::{Citation, Part};

/// The most bytes of a file that is shown in the stream itself.
const FILE_BYTES: usize = 8 << 20;

/// The most sources of one turn that are shown.
const SOURCES: usize = 256;

/// The reasoning that the provider shows.
pub(super) fn reasoning(part: &Part) -> Option<String> {
    match part {
        Part::Reasoning(reasoning) => Some(reasoning.text().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// The sources, each once, and the files.
pub(super) fn extras(parts: &[Part]) -> impl Iterator<Item = Event> {
    let mut seen = HashSet::new();
    parts.iter().filter_map(move |part| match part {
        Part::Citation(citation) if seen.len() < SOURCES => {
            seen.insert((citation.url.as_deref(), citation.title.as_deref())).then(|| source(citation))?
        }
        Part::Media(media) => file(media),
        _ => None,
    })
}

/// `None` for a quotation without an address and a title.
fn source(citation: &Citation) -> Option<Event> {
    let (url, title) = (citation.url.clone(), citation.title.clone());
    let id = format!("source-{}", Uuid::new_v4().simple());
    (url.is_some() || title.is_some()).then_some(Event::Source { id, url, title })
}

/// `None` for a file that only its provider can fetch.
fn file(media: &Media) -> Option<Event> {
    let media_type = media.essence().to_owned();
    match media.data() {
        Some(data) if data.len() > FILE_BYTES => {
            Some(Event::Status { text: "A file of the model is too large to be shown.".to_owned() })
        }
        Some(data) => Some(Event::File { url: format!("data:{media_type};base64,{data}"), media_type }),
        None => media.link().map(|url| Event::File { media_type, url: url.to_owned() }),
    }
}
