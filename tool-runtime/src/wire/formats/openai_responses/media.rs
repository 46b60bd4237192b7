//! Encodes images and files for Responses.

use crate::media::Media;
use crate::wire::Format;
use crate::wire::encode::{Object, data_url};

/// A part of a user's message or of a result: images, PDFs and text files.
pub(super) fn part(media: &Media) -> Option<Object<'_>> {
    let id = media.id_at(Format::OpenAiResponses);
    match media.essence() {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => {
            let image = Object::of_type("input_image");
            let image = match id {
                Some(id) => image.with("file_id", id),
                None => image.with("image_url", data_url(media)?),
            };
            Some(image.with("detail", "auto"))
        }
        kind => {
            let file = Object::of_type("input_file");
            if let Some(id) = id {
                return Some(file.with("file_id", id));
            }
            if kind != "application/pdf" && media.text().is_none() {
                return None;
            }
            match media.link() {
                Some(url) => Some(file.with("file_url", url)),
                None => Some(file.with("filename", media.file_name()).with("file_data", data_url(media)?)),
            }
        }
    }
}
