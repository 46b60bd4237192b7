//! Encodes images, audio, video and files for Gemini.

use crate::media::Media;
use crate::wire::Format;
use crate::wire::encode::Object;
use crate::wire::formats::gemini::model::{Generation, generation};

/// A part of a user's content: inline bytes, or the URI of a file.
pub(super) fn part(media: &Media) -> Option<Object<'_>> {
    let kind = media.essence();
    let is_taken = ["image/", "audio/", "video/", "text/"].iter().any(|prefix| kind.starts_with(prefix));
    if !is_taken && kind != "application/pdf" && media.text().is_none() {
        return None;
    }
    if let Some(data) = media.data() {
        let kind = if media.text().is_some() && !kind.starts_with("text/") { "text/plain" } else { kind };
        let data = Object::new().with("mimeType", kind).with("data", data);
        return Some(Object::new().with("inlineData", data));
    }
    let uri = media.link().or_else(|| media.id_at(Format::Gemini))?;
    Some(Object::new().with("fileData", Object::new().with("mimeType", kind).with("fileUri", uri)))
}

/// A part of a function's response (`FunctionResponse.parts`), for models that read them: inline images, PDFs and text
/// of the types that the AI SDK lists.
pub(super) fn response_part(media: &Media) -> Option<Object<'_>> {
    let kind = media.essence();
    let is_taken = matches!(kind, "image/png" | "image/jpeg" | "image/webp" | "application/pdf" | "text/plain");
    part(media).filter(|_| is_taken && media.data().is_some())
}

/// Returns `None`: models before Gemini 3 refuse files in a function's response.
pub(super) const fn no_part(_: &Media) -> Option<Object<'_>> {
    None
}

/// Whether the model reads files in a function's response, as Gemini 3 does. `true` if the model is unknown (`None`).
pub(super) fn reads_response_parts(model: Option<&str>) -> bool {
    model.is_none() || generation(model) == Some(Generation::Newer)
}
