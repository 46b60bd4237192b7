//! [`WithMedia`]: an output with attached images and files.

use std::fmt;

use crate::media::Media;

/// An output with images, audio or files attached to it, which a model can look at.
///
/// It is the whole output of a tool and cannot be inside another type. The output schema of the tool is the schema of
/// the value. Files leave the tool only if its allowlist names `$media`: in `redact` for everyone, in `model` for the
/// model alone. The files count as one leaf, so all of them leave or none. A call returns at most 16 files with 20 MiB
/// in total. A text tells the model how many files were withheld or left out. Records keep the media type, the size and
/// the SHA-256 of each file.
///
/// ```
/// use tool_runtime::media::Media;
/// use tool_runtime::{ToolError, WithMedia, tool};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Chart {
///     points: u32,
/// }
///
/// /// Draws the sales of a year.
/// #[tool(name = "sales__chart", effect = read_only, redact = ["points", "$media"])]
/// fn chart(
///     /// The year.
///     year: u32,
/// ) -> Result<WithMedia<Chart>, ToolError> {
///     let svg = format!("<svg xmlns='http://www.w3.org/2000/svg'><text>{year}</text></svg>");
///     let picture = Media::bytes("image/svg+xml", svg.as_bytes())?;
///     Ok(WithMedia::new(Chart { points: 12 }).media(picture))
/// }
/// ```
#[derive(Clone)]
pub struct WithMedia<T> {
    value: T,
    media: Vec<Media>,
}

impl<T> WithMedia<T> {
    /// Creates an output without files.
    pub const fn new(value: T) -> Self {
        Self { value, media: Vec::new() }
    }

    /// Adds a file.
    #[must_use]
    pub fn media(mut self, media: Media) -> Self {
        self.media.push(media);
        self
    }

    /// Returns the value and the files.
    pub fn into_parts(self) -> (T, Vec<Media>) {
        (self.value, self.media)
    }
}

// Outputs stay out of logs.
impl<T> fmt::Debug for WithMedia<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithMedia").field("media", &self.media).finish_non_exhaustive()
    }
}
