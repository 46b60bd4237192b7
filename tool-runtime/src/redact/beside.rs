//! [`Beside`]: the files beside an output, after the allowlist and the limits.

use crate::media::{MAX_BYTES, Media, files};
use crate::redact::{Projected, Projector};

/// The path that names the files beside an output.
pub(crate) const MEDIA: &str = "$media";

/// The path that names the text with which a server reports that a tool failed.
pub(crate) const ERROR: &str = "$error";

/// The most files of one call.
const MAX_FILES: usize = 16;

/// The files beside an output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// What the model gets.
    pub(crate) media: Vec<Media>,
    /// Whether everyone may see them.
    pub(crate) is_shown: bool,
    /// Files that the allowlist does not name.
    pub(crate) withheld: usize,
    /// Files beyond the limits of a call.
    pub(crate) left_out: usize,
}

impl Beside {
    /// Files of a call that are no longer here.
    pub(crate) fn gone(files: usize) -> Self {
        Self { left_out: files, ..Self::default() }
    }

    /// What the model reads of files that it does not get; empty if it gets all.
    pub(crate) fn note(&self) -> String {
        let mut note = String::new();
        let missing = match self.left_out {
            1 => "is not available: it is larger than one result may hold, one too many, or no longer here",
            _ => "are not available: they are more or larger than one result may hold, or no longer here",
        };
        for (count, why) in [(self.withheld, "may not be shown"), (self.left_out, missing)] {
            if count > 0 {
                note.extend(["\n\n[", &files(count), " that the tool returned ", why, ".]"]);
            }
        }
        note
    }
}

impl Projector {
    /// Adds the files beside an output: all of them if the allowlist names `$media`, as far as the limits allow.
    pub(crate) fn with_media(&self, projected: Projected, media: Vec<Media>) -> Projected {
        if !self.model_gets_media() {
            return Projected { media: Beside { withheld: media.len(), ..Beside::default() }, ..projected };
        }
        let (mut beside, mut bytes) = (Beside { is_shown: self.shows_media(), ..Beside::default() }, 0_usize);
        for one in media {
            let size = bytes.saturating_add(one.size());
            if beside.media.len() < MAX_FILES && size <= MAX_BYTES {
                bytes = size;
                beside.media.push(one);
            } else {
                beside.left_out += 1;
            }
        }
        Projected { media: beside, ..projected }
    }
}
