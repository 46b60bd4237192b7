//! Media types: their syntax, and the registered names of types with several names.

use crate::media::MediaError;

/// The maximum number of bytes of a media type, including its parameters.
const MAX_TYPE_BYTES: usize = 255;

/// Names in use, each with the registered name of the same type, which providers accept.
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

/// The registered name of a type, which must have no parameters.
pub(super) fn canonical(essence: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == essence).map_or(essence, |(_, name)| name)
}

/// Checks a media type. Returns it in lower case with its registered name; its parameters are not changed.
pub(super) fn parse(written: &str) -> Result<String, MediaError> {
    let (essence, parameters) = written.split_once(';').unwrap_or((written, ""));
    let essence = essence.trim_matches(' ').to_ascii_lowercase();
    // RFC 6838 also allows characters that have a meaning in URLs, but no registered name contains them.
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

/// The media type without its parameters.
pub(super) fn essence(media_type: &str) -> &str {
    media_type.split_once(';').map_or(media_type, |(essence, _)| essence)
}

/// Whether the text is printable ASCII that begins with a scheme (RFC 3986, section 3.1) and continues after it.
pub(super) fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(known)
    };
    let parts = text.split_once(':');
    parts.is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}
