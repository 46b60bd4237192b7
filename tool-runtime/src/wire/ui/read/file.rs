//! Reads the files of a user's message.

use crate::error::ParseError;
use crate::media::Media;
use crate::wire::ui::read::ChatErrorKind;

/// The maximum number of files of one message.
const MAX_FILES: usize = 32;

/// A file at a URL: a Base64 data URL, or the URL from which the provider fetches the file.
pub(super) fn at_url(media_type: &str, url: &str, path: &str) -> Result<Media, ParseError> {
    if let Some(data) = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:")).and(url.get(5..)) {
        // RFC 2397: `data:image/png;base64,iVBORw0KGgo=`
        let (header, data) = data.split_once(',').ok_or_else(|| refused(path))?;
        let header = header.strip_suffix(";base64").ok_or_else(|| refused(path))?;
        let essence = header.split(';').next().unwrap_or_default();
        if !essence.eq_ignore_ascii_case(media_type) {
            return Err(refused(path));
        }
        return in_base64(media_type, data, path);
    }
    Media::url(media_type, url).map_err(|_| refused(path))
}

/// A file in Base64 in the body.
pub(super) fn in_base64(media_type: &str, data: &str, path: &str) -> Result<Media, ParseError> {
    Media::base64(media_type, data).map_err(|error| match error.code() {
        "media_too_large" => ChatErrorKind::TooLarge.at(path),
        _ => refused(path),
    })
}

/// Adds a file to the files of a message.
pub(super) fn add(files: &mut Vec<Media>, file: Media, path: &str) -> Result<(), ParseError> {
    if files.len() == MAX_FILES {
        return Err(ChatErrorKind::TooLarge.at(path));
    }
    files.push(file);
    Ok(())
}

fn refused(path: &str) -> ParseError {
    ChatErrorKind::File.at(path)
}
