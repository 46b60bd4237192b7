//! The events for parts of a turn that are shown at its end: reasoning, sources and files.

use std::collections::HashSet;

use uuid::Uuid;

use crate::call::Event;
use crate::wire::history::{Citation, Part};

/// The maximum number of sources of one turn that are shown.
const SOURCES: usize = 256;

/// Returns the text of a reasoning part. `None` for empty reasoning and for any other part.
pub(super) fn reasoning(part: &Part) -> Option<String> {
    match part {
        Part::Reasoning { text, .. } => Some(text.clone()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// Returns the events for the sources (each source once) and the files of a turn.
pub(super) fn extras(parts: &[Part]) -> impl Iterator<Item = Event> {
    let mut seen = HashSet::new();
    parts.iter().filter_map(move |part| match part {
        Part::Citation(citation) if seen.len() < SOURCES => {
            seen.insert((citation.url.as_deref(), citation.title.as_deref())).then(|| source(citation))?
        }
        Part::Media(media) => Event::file(media),
        _ => None,
    })
}

/// Returns the event of a source; `None` for a citation with neither an address nor a title.
fn source(citation: &Citation) -> Option<Event> {
    let (url, title) = (citation.url.clone(), citation.title.clone());
    let id = format!("source-{}", Uuid::new_v4().simple());
    (url.is_some() || title.is_some()).then_some(Event::Source { id, url, title })
}
