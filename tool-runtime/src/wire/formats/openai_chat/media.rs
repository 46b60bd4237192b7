//! Media for Chat Completions: encodes the user's files, and decodes the media that a model made, as gateways send
//! them.

use crate::media::Media;
use crate::wire::Format;
use crate::wire::encode::{Object, data_url};

/// A part of a user's message: images, WAV and MP3, PDFs, and text.
pub(super) fn part(media: &Media) -> Option<Object<'_>> {
    let kind = media.essence();
    if let Some(text) = media.quoted() {
        return Some(Object::of_type("text").with("text", text));
    }
    match kind {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => {
            Some(Object::of_type("image_url").with("image_url", Object::new().with("url", data_url(media)?)))
        }
        "audio/wav" | "audio/mpeg" => {
            let format = if kind == "audio/wav" { "wav" } else { "mp3" };
            let audio = Object::new().with("data", media.data()?).with("format", format);
            Some(Object::of_type("input_audio").with("input_audio", audio))
        }
        "application/pdf" => {
            let file = match media.id_at(Format::OpenAiChat) {
                Some(id) => Object::new().with("file_id", id),
                // The format has no field for the URL of a file.
                None => Object::new()
                    .with("filename", media.file_name())
                    .with("file_data", data_url(media).filter(|_| media.data().is_some())?),
            };
            Some(Object::of_type("file").with("file", file))
        }
        _ => None,
    }
}

/// Reads an image URL, which may be a `data` URL (RFC 2397). `None` if it is not an image that can be stored.
pub(super) fn image(url: &str) -> Option<Media> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        // Gateways sometimes send the wrong type, so it is detected from the bytes.
        Some((kind, data)) => Media::base64(kind, data).or_else(|_| Media::unlabelled(data)).ok(),
        None => Media::url("application/octet-stream", url).ok(),
    }
}

/// The URL of an image; `None` if only its provider has the media.
pub(super) fn url(media: &Media) -> Option<String> {
    data_url(media)
}

/// Reads audio. The request chose its format, so the type is detected from the bytes.
pub(super) fn audio(data: &str) -> Option<Media> {
    Media::unlabelled(data).ok()
}
