//! Media that a model made, as Chat Completions and its gateways write them.

use crate::media::Media;
use crate::wire::encode::data_url;

/// An image behind a URL, which may hold the bytes itself (RFC 2397). `None` if it is not an image that can be kept.
pub(super) fn image(url: &str) -> Option<Media> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        // Gateways write the wrong type at times; the bytes decide it.
        Some((kind, data)) => Media::base64(kind, data).or_else(|_| Media::unlabelled(data)).ok(),
        None => Media::url("application/octet-stream", url).ok(),
    }
}

/// The URL of an image; `None` for media that only a provider has.
pub(super) fn url(media: &Media) -> Option<String> {
    data_url(media)
}

/// Audio. The request chose its format, so the bytes decide the type.
pub(super) fn audio(data: &str) -> Option<Media> {
    Media::unlabelled(data).ok()
}
