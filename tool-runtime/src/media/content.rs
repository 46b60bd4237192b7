//! Detects the type of content from its bytes.

use crate::media::MediaError;
use crate::media::types::{canonical, essence};

const PDF: &str = "application/pdf";

/// The header of a PDF must be within this many bytes from the start, as in PDF readers.
const PDF_HEADER_WITHIN: usize = 1024;

/// The media type of content with a signature; `None` for text and unrecognised content.
pub(super) fn recognised(bytes: &[u8]) -> Option<&'static str> {
    let head = bytes.get(..PDF_HEADER_WITHIN).unwrap_or(bytes);
    if head.windows(5).any(|window| window == b"%PDF-") && !is_image(infer::get(bytes)) {
        return Some(PDF);
    }
    infer::get(bytes).map(|found| canonical(found.mime_type())).filter(|found| !found.starts_with("text/"))
}

fn is_image(found: Option<infer::Type>) -> bool {
    found.is_some_and(|found| found.mime_type().starts_with("image/"))
}

/// Checks that content can have the declared media type.
///
/// Images with a known signature, PDFs and text must match. The signatures of audio and video are not reliable enough
/// for that, so such content is refused only if it is recognised as neither audio nor video. Content of an image type
/// without a known signature must not be recognised. Content of any other type must not be recognised, except as an
/// `application/` type that is not PDF.
pub(super) fn check(media_type: &str, bytes: &[u8]) -> Result<(), MediaError> {
    let declared = essence(media_type);
    let found = recognised(bytes);
    let sounds = |found: &str| found.starts_with("audio/") || found.starts_with("video/");
    let fits = if is_text(declared) {
        found.is_none() && is_utf8_text(bytes)
    } else if declared == PDF || (declared.starts_with("image/") && infer::is_mime_supported(declared)) {
        found == Some(declared)
    } else if sounds(declared) {
        found.is_none_or(sounds)
    } else {
        found.is_none_or(|found| found.starts_with("application/") && found != PDF && !declared.starts_with("image/"))
    };
    if fits { Ok(()) } else { Err(MediaError::Mismatch { found }) }
}

/// Whether content of this type is text.
pub(super) fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(essence, "application/json" | "application/xml" | "application/x-ndjson")
}

/// The media type of a file, detected from its content; `text/plain` for text.
pub(super) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    recognised(bytes).or_else(|| is_utf8_text(bytes).then_some("text/plain"))
}

fn is_utf8_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}
