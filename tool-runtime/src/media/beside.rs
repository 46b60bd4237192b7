//! [`Beside`]: the files beside a value on its way to the model.

use crate::media::{Media, files};

/// The files beside a value. Few values have any, so it is behind a pointer wherever a value is.
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
    /// Files of a call that are no longer here. `None` if it had none.
    pub(crate) fn gone(files: usize) -> Option<Box<Self>> {
        (files > 0).then(|| Box::new(Self { left_out: files, ..Self::default() }))
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
