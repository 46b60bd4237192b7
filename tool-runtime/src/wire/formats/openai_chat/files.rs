//! Images, audio and files of users in the shape of Chat Completions.

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
                // The format has no place for the URL of a file.
                None => Object::new()
                    .with("filename", media.file_name())
                    .with("file_data", data_url(media).filter(|_| media.data().is_some())?),
            };
            Some(Object::of_type("file").with("file", file))
        }
        _ => None,
    }
}
