//! Media types: their syntax, and one name for types that have several.

use crate::media::MediaError;

/// The longest media type, parameters included, in bytes.
const MAX_TYPE_BYTES: usize = 255;

/// Names that are in use for one type, and the registered one, which providers take.
const ALIASES: &[(&str, &str)] = &[
    ("application/x-pdf", "application/pdf"),
    ("audio/m4a", "audio/mp4"),
    ("audio/mp3", "audio/mpeg"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/x-flac", "audio/flac"),
    ("audio/x-m4a", "audio/mp4"),
    ("audio/x-wav", "audio/wav"),
    ("image/heic", "image/heif"),
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
];

/// The registered name of a type without parameters.
pub(super) fn canonical(essence: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == essence).map_or(essence, |(_, name)| name)
}

/// Checks a media type and returns it with its registered name, in lower case; parameters stay as they are.
pub(super) fn parse(written: &str) -> Result<String, MediaError> {
    let (essence, parameters) = written.split_once(';').unwrap_or((written, ""));
    let essence = essence.trim_matches(' ').to_ascii_lowercase();
    // RFC 6838 also allows marks that have a meaning in URLs; no registered name has one of those.
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
    };
    let valid = essence.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype));
    let printable = parameters.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b',');
    if written.len() > MAX_TYPE_BYTES || !valid || !printable {
        return Err(MediaError::Type);
    }
    let mut parsed = canonical(&essence).to_owned();
    if !parameters.trim().is_empty() {
        parsed.push(';');
        parsed.push_str(parameters);
    }
    Ok(parsed)
}

/// The type without its parameters.
pub(super) fn essence(media_type: &str) -> &str {
    media_type.split_once(';').map_or(media_type, |(essence, _)| essence)
}

/// Whether the text is printable ASCII with a scheme (RFC 3986, section 3.1) and something after it.
pub(super) fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(known)
    };
    let parts = text.split_once(':');
    parts.is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}
