//! [`MediaError`]: the reasons to refuse content as [`Media`](crate::media::Media).

use std::fmt;

use crate::error::ParseError;

/// The reason to refuse bytes, a URL or an id as [`Media`](crate::media::Media). It contains no part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaError {
    /// The media type is not valid (RFC 6838). A valid type is `image/png`.
    Type,
    /// The content does not match the media type.
    Mismatch {
        /// The detected media type of the content; `None` if it is not recognised.
        found: Option<&'static str>,
    },
    /// The content is empty.
    Empty,
    /// The content is too large.
    TooLarge {
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The text is not Base64 with padding (RFC 4648, section 4).
    Base64,
    /// The URL is not an absolute `http` or `https` URL of at most 8 KiB.
    Url,
    /// The URI has no scheme, is longer than 8 KiB, or contains a space or a character that is not printable ASCII.
    Uri,
    /// The provider's id, or the name of its format, is empty, is longer than 512 bytes, or contains a space or a
    /// character that is not printable ASCII.
    Id,
}

impl MediaError {
    const fn code(&self) -> &'static str {
        match self {
            Self::Type => "media_type_invalid",
            Self::Mismatch { .. } => "media_type_mismatch",
            Self::Empty => "media_empty",
            Self::TooLarge { .. } => "media_too_large",
            Self::Base64 => "media_not_base64",
            Self::Url => "media_url_invalid",
            Self::Uri => "media_uri_invalid",
            Self::Id => "media_id_invalid",
        }
    }
}

impl fmt::Display for MediaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type => f.write_str("the media type is not valid; write a type and a subtype, such as `image/png`"),
            Self::Mismatch { found: Some(found) } => {
                write!(f, "the content does not match the media type; it is `{found}`")
            }
            Self::Mismatch { found: None } => f.write_str("the content does not match the media type"),
            Self::Empty => f.write_str("the file is empty"),
            Self::TooLarge { limit } => write!(f, "the file is larger than the limit of {limit} bytes"),
            Self::Base64 => f.write_str("the data is not Base64 with padding"),
            Self::Url => f.write_str("the URL is not an absolute `http` or `https` URL of at most 8 KiB"),
            Self::Uri => f.write_str("the URI has no scheme, is longer than 8 KiB or is not printable ASCII"),
            Self::Id => f.write_str("the provider's id is empty, too long or not printable ASCII"),
        }
    }
}

impl From<MediaError> for ParseError {
    fn from(error: MediaError) -> Self {
        Self::formatted(error.code(), error.to_string())
    }
}
