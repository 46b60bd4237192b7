//! [`Media`]: an image, audio or a file in a conversation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::wire::Format;

/// An image, audio or a file.
///
/// ```
/// use tool_runtime::wire::history::Media;
///
/// let plan = Media::url("image/png", "https://example.com/plan.png");
/// assert_eq!(plan.media_type, "image/png");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Media {
    /// The media type (RFC 6838), such as `image/png`.
    pub media_type: String,
    /// Where its bytes are.
    pub source: MediaSource,
    /// The name of the file. `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where the bytes of [`Media`] are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// Here, in Base64 (RFC 4648, section 4).
    Base64(String),
    /// Behind a URL that the provider fetches.
    Url(String),
    /// At a provider that stored it under an id.
    Id {
        /// The provider's format.
        format: Format,
        /// The provider's id.
        id: String,
    },
}

impl Media {
    /// Creates media from bytes in Base64.
    #[must_use]
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self { media_type: media_type.into(), source: MediaSource::Base64(data.into()), name: None }
    }

    /// Creates media behind a URL.
    #[must_use]
    pub fn url(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self { media_type: media_type.into(), source: MediaSource::Url(url.into()), name: None }
    }

    /// Creates media that a provider stored under an id.
    #[must_use]
    pub fn id(media_type: impl Into<String>, format: Format, id: impl Into<String>) -> Self {
        Self { media_type: media_type.into(), source: MediaSource::Id { format, id: id.into() }, name: None }
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

// What users send stays out of logs, and so do URLs, which can hold a signature.
impl fmt::Debug for MediaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base64(data) => f.debug_struct("Base64").field("bytes", &data.len()).finish_non_exhaustive(),
            Self::Url(_) => f.debug_struct("Url").finish_non_exhaustive(),
            Self::Id { format, .. } => f.debug_struct("Id").field("format", format).finish_non_exhaustive(),
        }
    }
}
