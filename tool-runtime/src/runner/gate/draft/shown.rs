//! [`Shown`]: the visible form of arguments in a record, before digests with the store's key replace the hashes.

use crate::call::{JsonText, RecordedArguments, RepairUse};
use crate::runner::ledger::digests::Digests;
use crate::tool::Hash;

/// The visible form of arguments in a record.
pub(in crate::runner) enum Shown {
    /// The arguments were read; sensitive ones are masked.
    Masked(JsonText),
    /// The arguments could not be read: their length in bytes, and their hash.
    Unread(usize, Hash),
}

impl Shown {
    pub(in crate::runner) fn unread(raw: &str) -> Self {
        Self::Unread(raw.len(), Hash::sha256(raw))
    }

    pub(in crate::runner) fn recorded(self, digests: &Digests) -> RecordedArguments {
        match self {
            Self::Masked(arguments) => RecordedArguments::Masked(arguments),
            Self::Unread(length, hash) => RecordedArguments::Unread { length, digest: digests.of(hash) },
        }
    }
}

/// Hashes of the model's text. They never leave the process, because sensitive arguments can be guessed from them.
#[derive(Clone, Default)]
pub(super) struct Plain {
    pub(super) unread: Option<(usize, Hash)>,
    pub(super) repair: Option<Box<RepairUse>>,
}
