//! [`Attachments`]: the files attached to a tool's result for the model, and the number of its omitted items and bytes.

use serde::{Deserialize, Serialize};

use crate::media::{Media, files};

/// The counts of the items and bytes that were omitted from a value to keep it within its tool's size limit.
///
/// ```
/// use tool_runtime::call::LeftOut;
///
/// let mut left_out = LeftOut::default();
/// assert!(left_out.is_none());
/// left_out.items = 3;
/// assert_eq!(left_out.note(), "[3 more items did not fit into the result.]");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The number of omitted items of arrays and entries of maps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub items: usize,
    /// The number of omitted bytes at the ends of texts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl LeftOut {
    /// Returns whether nothing was omitted.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.items == 0 && self.bytes == 0
    }

    /// Returns a note about the omitted items and bytes, for a reader of the value; empty if nothing was omitted.
    #[must_use]
    pub fn note(self) -> String {
        let counted = |count: usize, one: &str| match count {
            0 => None,
            1 => Some(format!("1 more {one}")),
            _ => Some(format!("{count} more {one}s")),
        };
        let parts: Vec<_> = [counted(self.items, "item"), counted(self.bytes, "byte")].into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!("[{} did not fit into the result.]", parts.join(" and ")) }
    }
}

/// The attachments of a value. Values box them, because few values have any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attachments {
    /// The files for the model.
    pub(crate) media: Vec<Media>,
    /// Whether everyone may see the files, and not only the model.
    pub(crate) is_shown: bool,
    /// The number of files that not even the model gets, because the tool's `redact` and `model` do not list them.
    pub(crate) withheld: usize,
    /// The number of files that exceed the limits of a result, or that are no longer stored.
    pub(crate) unavailable: usize,
    /// The parts of the value that were omitted.
    pub(crate) left_out: LeftOut,
}

impl Attachments {
    /// Restores the attachments of a recorded result, whose files are no longer available. `None` if there were none.
    pub(crate) fn recorded(files: usize, left_out: LeftOut) -> Option<Box<Self>> {
        let attachments = Self { unavailable: files, left_out, ..Self::default() };
        (files > 0 || !left_out.is_none()).then(|| Box::new(attachments))
    }

    /// Returns a note about files that the model does not get; empty if it gets all of them.
    pub(crate) fn note(&self) -> String {
        let mut note = String::new();
        let missing = match self.unavailable {
            1 => "is not available: it exceeds the number or size of files in one result, or is no longer stored",
            _ => "are not available: they exceed the number or size of files in one result, or are no longer stored",
        };
        for (count, why) in [(self.withheld, "may not be shown"), (self.unavailable, missing)] {
            if count > 0 {
                note.extend(["\n\n[", &files(count), " that the tool returned ", why, ".]"]);
            }
        }
        note
    }
}
