//! The files attached to an output, after the allowlist and the limits.

use crate::media::{MAX_BYTES, Media};
use crate::redact::{Projected, Projector};

/// The path that names the files attached to an output.
pub(crate) const MEDIA: &str = "$media";

/// The path that names the error text of a server.
pub(crate) const ERROR: &str = "$error";

/// The maximum number of files of one call.
const MAX_FILES: usize = 16;

impl Projector {
    /// Adds the files attached to an output. Files that the allowlist or the limits exclude are only counted.
    pub(crate) fn with_media(&self, projected: Projected, media: Vec<Media>) -> Projected {
        if media.is_empty() {
            return projected;
        }
        let Projected { shown, model, attachments } = projected;
        let mut attachments = attachments.unwrap_or_default();
        if !self.model_gets_media() {
            attachments.withheld = media.len();
            return Projected { shown, model, attachments: Some(attachments) };
        }
        attachments.is_shown = self.shows_media();
        let mut bytes = 0_usize;
        for one in media {
            let size = bytes.saturating_add(one.size());
            if attachments.media.len() < MAX_FILES && size <= MAX_BYTES {
                bytes = size;
                attachments.media.push(one);
            } else {
                attachments.unavailable += 1;
            }
        }
        Projected { shown, model, attachments: Some(attachments) }
    }
}
