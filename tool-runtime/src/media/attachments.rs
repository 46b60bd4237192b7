//! [`Attachments`]: the files attached to a value on its way to the model, and the counts of its omitted items and
//! bytes.

use serde::{Deserialize, Serialize};

use crate::media::{Media, files};

/// The amount of a value that was omitted to keep it within the limit of its tool.
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
    /// Items of arrays and entries of maps, whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub items: usize,
    /// Bytes at the ends of texts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl LeftOut {
    /// Whether the value is whole.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.items == 0 && self.bytes == 0
    }

    /// Returns the note on omitted items and bytes for a reader of the value; empty if the value is whole.
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

/// The attachments of a value. It is boxed wherever a value is, because few values have any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attachments {
    /// The files for the model.
    pub(crate) media: Vec<Media>,
    /// Whether everyone may see them.
    pub(crate) is_shown: bool,
    /// Files that the allowlist does not name.
    pub(crate) withheld: usize,
    /// Files beyond the limits of a call.
    pub(crate) unavailable: usize,
    /// The counts of items and bytes that are missing from the value itself.
    pub(crate) left_out: LeftOut,
}

impl Attachments {
    /// Restores the attachments of a recorded result, whose files are gone. `None` if there were none.
    pub(crate) fn recorded(files: usize, left_out: LeftOut) -> Option<Box<Self>> {
        let attachments = Self { unavailable: files, left_out, ..Self::default() };
        (files > 0 || !left_out.is_none()).then(|| Box::new(attachments))
    }

    /// Returns the note on files that the model does not get; empty if it gets all.
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
