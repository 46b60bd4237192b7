//! Media that a model made, as Chat Completions and its gateways write them.

use crate::wire::history::{Media, MediaSource};

/// The type of media of which the response says nothing.
const UNKNOWN: &str = "application/octet-stream";

/// An image behind a URL, which may hold the bytes itself (RFC 2397).
pub(super) fn image(url: &str) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((kind, data)) => Media::base64(kind, data),
        None => Media::url(UNKNOWN, url),
    }
}

/// The URL of an image; `None` for media that only a provider has.
pub(super) fn url(media: &Media) -> Option<String> {
    match &media.source {
        MediaSource::Base64(data) => Some(format!("data:{};base64,{data}", media.media_type)),
        MediaSource::Url(url) => Some(url.clone()),
        MediaSource::Id { .. } => None,
    }
}

/// Audio. The request chose its format, so the first bytes have to say which it is.
pub(super) fn audio(data: &str) -> Media {
    let kinds = [
        ("UklGR", "audio/wav"),
        ("SUQz", "audio/mpeg"),
        ("//", "audio/mpeg"),
        ("T2dnUw", "audio/ogg"),
        ("ZkxhQ", "audio/flac"),
    ];
    let kind = kinds.iter().find(|(start, _)| data.starts_with(start)).map_or(UNKNOWN, |(_, kind)| *kind);
    Media::base64(kind, data)
}
