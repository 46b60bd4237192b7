//! Images and documents in the shape of Anthropic Messages.

use crate::media::Media;
use crate::wire::Format;
use crate::wire::encode::{Node, Object};

/// The largest image in Base64 that the provider's own endpoint takes ("Vision", request limits: 10 MB), in bytes.
/// Bedrock and Google Cloud take half of that, and refuse a larger one themselves. The limit of a request, 32 MB
/// ("Errors"), is above that of the files of one request (20 MiB, 27 MiB in Base64).
const MAX_IMAGE_BYTES: usize = 10_000_000;

/// A block of a user's message or of a result: images of four types, PDFs, and text.
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
