//! Deserialises saved media, which are checked again.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use super::{MediaLocation, decoded_len};
use crate::error::ParseError;
use crate::media::{MAX_BYTES, Media, MediaError};

/// Saved media before the checks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    media_type: String,
    source: MediaLocation,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

/// Deserialises a string, and refuses it before the copy if it is too long for any media.
pub(super) fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Bounded;

    impl Visitor<'_> for Bounded {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Base64")
        }

        fn visit_str<E: de::Error>(self, data: &str) -> Result<Arc<str>, E> {
            if decoded_len(data) > MAX_BYTES {
                return Err(E::custom(MediaError::TooLarge { limit: MAX_BYTES }));
            }
            Ok(data.into())
        }
    }

    deserializer.deserialize_str(Bounded)
}

impl TryFrom<Saved> for Media {
    type Error = ParseError;

    fn try_from(Saved { media_type, source, name, uri }: Saved) -> Result<Self, ParseError> {
        let media = match source {
            MediaLocation::Base64(data) => Self::base64(&media_type, data)?,
            MediaLocation::Url(url) => Self::url(&media_type, url)?,
            MediaLocation::Id { format, id } => Self::stored(&media_type, format, id)?,
        };
        let media = match name {
            Some(name) => media.with_name(&name),
            None => media,
        };
        match uri {
            Some(uri) => media.with_uri(uri),
            None => Ok(media),
        }
    }
}
