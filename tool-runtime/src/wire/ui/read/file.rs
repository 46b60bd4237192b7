//! Files of a user's message.

use crate::media::Media;
use crate::wire::ui::read::{ChatError, ChatErrorKind};

/// The maximum number of files of one message.
const MAX_FILES: usize = 32;

/// A file at this address: a data URL in Base64, or where its provider fetches it.
pub(super) fn at_url(media_type: &str, url: &str, path: &str) -> Result<Media, ChatError> {
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

/// A file in the body itself.
pub(super) fn in_base64(media_type: &str, data: &str, path: &str) -> Result<Media, ChatError> {
    Media::base64(media_type, data).map_err(|error| match error.code() {
        "media_too_large" => ChatError::new(ChatErrorKind::TooLarge, path),
        _ => refused(path),
    })
}

/// Adds a file to those of a message.
pub(super) fn add(files: &mut Vec<Media>, file: Media, path: &str) -> Result<(), ChatError> {
    if files.len() == MAX_FILES {
        return Err(ChatError::new(ChatErrorKind::TooLarge, path));
    }
    files.push(file);
    Ok(())
}

fn refused(path: &str) -> ChatError {
    ChatError::new(ChatErrorKind::File, path)
}
