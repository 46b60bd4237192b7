//! [`Media`]: an image, audio or a file.

mod saved;

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::media::{MAX_BYTES, MediaError, content, types};
use crate::text::{cut, strip_invisible};
use crate::tool::Hash;

/// The maximum number of bytes of a URL.
const MAX_URL_BYTES: usize = 8 * 1024;

/// The maximum number of bytes of a provider's id.
const MAX_ID_BYTES: usize = 512;

/// The maximum number of bytes of a file name.
const MAX_NAME_BYTES: usize = 255;

/// An image, audio or a file, with its media type. Clones share the bytes, so cloning is cheap.
///
/// Content that is in the value must match the media type: a PDF that is declared as `image/png` is refused. Its
/// maximum size is 20 MiB. Content at a URL is not checked.
///
/// ```
/// use tool_runtime::error::ParseError;
/// use tool_runtime::media::Media;
///
/// let plan = Media::url("image/png", "https://example.com/plan.png")?;
/// assert_eq!(plan.media_type(), "image/png");
///
/// let report = Media::file("report.pdf", b"%PDF-1.7 ..")?;
/// assert_eq!((report.media_type(), report.name()), ("application/pdf", Some("report.pdf")));
/// let lie = Media::bytes("image/png", b"%PDF-1.7 ..");
/// assert_eq!(lie.map_err(|error| error.code()), Err("media_type_mismatch"));
/// assert_eq!(Media::url("image/png", "file:///etc/passwd").map_err(|error| error.code()), Err("media_url_invalid"));
/// # Ok::<(), ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "saved::Saved")]
#[allow(clippy::struct_field_names, reason = "RFC 6838 calls it a media type")]
pub struct Media {
    media_type: Arc<str>,
    source: MediaLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<Arc<str>>,
}

/// The place of the content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediaLocation {
    /// In this value, as Base64 (RFC 4648, section 4).
    Base64(#[serde(deserialize_with = "saved::bounded")] Arc<str>),
    /// At a URL, from which the provider fetches it.
    Url(Arc<str>),
    /// At a provider that stored it under an id. `format` is the name of the provider's format.
    Id { format: Arc<str>, id: Arc<str> },
}

impl Media {
    /// Creates media from bytes, which are copied after the checks.
    ///
    /// # Errors
    /// The media type is invalid or does not match the content, or the content is empty or too large.
    pub fn bytes(media_type: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        let media_type = types::parse(media_type)?;
        check_size(bytes.len())?;
        content::check(&media_type, bytes)?;
        Ok(Self::of(media_type, MediaLocation::Base64(STANDARD.encode(bytes).into())))
    }

    /// Creates media from the bytes of a file. The media type is detected: images, audio, video, PDFs and other formats
    /// with a signature are recognised, and other UTF-8 text without U+0000 is `text/plain`.
    ///
    /// # Errors
    /// The content is not recognised, is empty or is too large.
    pub fn file(name: &str, bytes: &[u8]) -> Result<Self, ParseError> {
        check_size(bytes.len())?;
        let media_type = content::media_type(bytes).ok_or(MediaError::Mismatch { found: None })?;
        Ok(Self::bytes(media_type, bytes)?.with_name(name))
    }

    /// Creates media from Base64 with padding (RFC 4648, section 4).
    ///
    /// # Errors
    /// The text is not Base64. The other errors are those of [`bytes`](Self::bytes).
    pub fn base64(media_type: &str, data: impl Into<Arc<str>>) -> Result<Self, ParseError> {
        let data = data.into();
        let media_type = types::parse(media_type)?;
        check_size(decoded_len(&data))?;
        let bytes = STANDARD.decode(&*data).map_err(|_| MediaError::Base64)?;
        content::check(&media_type, &bytes)?;
        Ok(Self::of(media_type, MediaLocation::Base64(data)))
    }

    /// Creates media from Base64 without a declared type. The type is detected, or `application/octet-stream`.
    pub(crate) fn unlabelled(data: &str) -> Result<Self, MediaError> {
        check_size(decoded_len(data))?;
        let bytes = STANDARD.decode(data).map_err(|_| MediaError::Base64)?;
        let media_type = content::media_type(&bytes).unwrap_or("application/octet-stream");
        Ok(Self::of(media_type.to_owned(), MediaLocation::Base64(data.into())))
    }

    /// Creates media at an `http` or `https` URL. The provider fetches it; this library does not.
    ///
    /// # Errors
    /// The media type or the URL is invalid.
    pub fn url(media_type: &str, url: impl Into<Arc<str>>) -> Result<Self, ParseError> {
        let url = url.into();
        let media_type = types::parse(media_type)?;
        let is_http = |scheme: &str| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        let rest = url.split_once("://").filter(|(scheme, _)| is_http(scheme)).map(|(_, rest)| rest);
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).filter(|host| !host.is_empty());
        if host.is_none() || url.len() > MAX_URL_BYTES || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(MediaError::Url.into());
        }
        Ok(Self::of(media_type, MediaLocation::Url(url)))
    }

    /// Creates media that a provider stored under an id.
    pub(crate) fn stored(media_type: &str, format: Arc<str>, id: Arc<str>) -> Result<Self, MediaError> {
        let media_type = types::parse(media_type)?;
        let is_id = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_id(&format) || !is_id(&id) || format.len() > MAX_ID_BYTES || id.len() > MAX_ID_BYTES {
            return Err(MediaError::Id);
        }
        Ok(Self::of(media_type, MediaLocation::Id { format, id }))
    }

    fn of(media_type: String, source: MediaLocation) -> Self {
        Self { media_type: media_type.into(), source, name: None, uri: None }
    }

    /// Sets the name of the file. Only the part after the last path separator is kept, without invisible characters,
    /// and at most 255 bytes of it. An empty name removes the name.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let clean = strip_invisible(last, |_| false);
        let kept = cut(clean.trim(), MAX_NAME_BYTES);
        self.name = (!kept.is_empty()).then(|| kept.into());
        self
    }

    /// Sets a URI under which an MCP client may know the content as a resource, such as `notes://2026/plan`. Nothing
    /// fetches the URI, and model providers do not get it.
    ///
    /// # Errors
    /// The text has no scheme (RFC 3986, section 3.1), is longer than 8 KiB, or contains a space or a character that is
    /// not printable ASCII.
    pub fn with_uri(mut self, uri: impl Into<Arc<str>>) -> Result<Self, ParseError> {
        let uri = uri.into();
        if !types::is_uri(&uri) || uri.len() > MAX_URL_BYTES {
            return Err(MediaError::Uri.into());
        }
        self.uri = Some(uri);
        Ok(self)
    }

    /// Returns the URI of the content as a resource; `None` if there is none.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        self.uri.as_deref()
    }

    /// Returns the media type (RFC 6838) in lower case, with its parameters as they were written. A common alias is
    /// replaced by the registered name: `image/jpg` becomes `image/jpeg`.
    #[must_use]
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// Returns the name of the file; `None` if it has none.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the content in Base64; `None` if it is at a URL or stored by a provider.
    #[must_use]
    pub fn data(&self) -> Option<&str> {
        if let MediaLocation::Base64(data) = &self.source { Some(data) } else { None }
    }

    /// Returns the URL of the content; `None` if this value contains the content or a provider stored it.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        if let MediaLocation::Url(url) = &self.source { Some(url) } else { None }
    }

    /// Returns the number of bytes of the content; 0 if this value does not contain it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data().map_or(0, decoded_len)
    }

    pub(crate) const fn source(&self) -> &MediaLocation {
        &self.source
    }

    /// The media type without its parameters.
    pub(crate) fn essence(&self) -> &str {
        types::essence(&self.media_type)
    }

    /// The content of a text file; `None` for other files.
    pub(crate) fn text(&self) -> Option<String> {
        let data = self.data().filter(|_| content::is_text(self.essence()))?;
        String::from_utf8(STANDARD.decode(data).ok()?).ok()
    }

    /// The SHA-256 of the content, or of its URL or id.
    pub(crate) fn sha256(&self) -> Hash {
        match &self.source {
            // The content was decoded during the checks, so this does not fail.
            MediaLocation::Base64(data) => Hash::sha256(STANDARD.decode(&**data).unwrap_or_default()),
            MediaLocation::Url(text) | MediaLocation::Id { id: text, .. } => Hash::sha256(&**text),
        }
    }

    /// A description for people and models: the media type, and the size if this value contains the content.
    pub(crate) fn label(&self) -> String {
        match self.size() {
            0 => self.essence().to_owned(),
            size => format!("{}, {size} bytes", self.essence()),
        }
    }
}

const fn check_size(size: usize) -> Result<(), MediaError> {
    match size {
        0 => Err(MediaError::Empty),
        size if size > MAX_BYTES => Err(MediaError::TooLarge { limit: MAX_BYTES }),
        _ => Ok(()),
    }
}

/// The number of bytes that the Base64 text decodes to.
pub(crate) fn decoded_len(data: &str) -> usize {
    let padding = data.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    (data.len() / 4 * 3).saturating_sub(padding)
}

// Content stays out of logs. So do names, and URLs, which can contain a signature.
impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("media_type", &self.essence())
            .field("bytes", &self.size())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
