//! Encodes images and documents for Anthropic Messages.

use crate::media::Media;
use crate::wire::Format;
use crate::wire::encode::{Node, Object};

/// The maximum number of Base64 bytes of an image at the provider's own endpoint ("Vision", request limits: 10 MB).
/// Bedrock and Google Cloud accept half of that, and refuse larger images themselves. A request may have 32 MB
/// ("Errors"), which is more than the 20 MiB of files in one request (27 MiB in Base64).
const MAX_IMAGE_BYTES: usize = 10_000_000;

/// The block of a user's message or of a result: images of four types, PDFs, and text.
pub(super) fn block(media: &Media) -> Option<Object<'_>> {
    let kind = media.essence();
    let (block, is_text) = match kind {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => ("image", false),
        "application/pdf" => ("document", false),
        _ => ("document", true),
    };
    let source = if let Some(id) = media.id_at(Format::Anthropic) {
        Object::of_type("file").with("file_id", id)
    } else if is_text {
        Object::of_type("text").with("media_type", "text/plain").with("data", media.text()?)
    } else if let Some(data) = media.data() {
        if block == "image" && data.len() > MAX_IMAGE_BYTES {
            return None;
        }
        Object::of_type("base64").with("media_type", kind).with("data", data)
    } else {
        Object::of_type("url").with("url", media.link()?)
    };
    let written = Object::of_type(block).with("source", source);
    Some(match media.name().filter(|_| block == "document") {
        Some(name) => written.with("title", Node::from(name)),
        None => written,
    })
}
