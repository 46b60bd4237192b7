//! Media that a provider stored under an id.

use crate::error::ParseError;
use crate::media::{Media, MediaLocation};
use crate::wire::Format;

impl Media {
    /// Creates media that a provider stored, from its id, such as a file id; for Gemini, the id is the URI of the file.
    /// Only requests in this format contain it.
    ///
    /// # Errors
    /// The media type is not valid, or the id is empty, longer than 512 bytes or not printable ASCII.
    pub fn id(media_type: &str, format: Format, id: &str) -> Result<Self, ParseError> {
        Ok(Self::stored(media_type, format.as_str().into(), id.into())?)
    }

    /// The id under which the provider of this format stored the media; `None` if it did not store them.
    pub(crate) fn id_at(&self, format: Format) -> Option<&str> {
        match self.source() {
            MediaLocation::Id { format: stored, id } if **stored == *format.as_str() => Some(id),
            _ => None,
        }
    }
}
