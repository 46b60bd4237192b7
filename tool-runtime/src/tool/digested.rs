//! [`Digested`]: the arguments of a call, for the layers below the one that reads them.

use crate::tool::Hash;

/// The arguments of a call, as the tool gets them. Canonical text and hash are made for those who ask: together they cost
/// as much as all other stages of a small call, and most calls need neither.
pub(crate) trait Digested: Send + Sync {
    /// The tool.
    fn tool(&self) -> &str;

    /// The text that was read. Calls of one tool that have the same are the same.
    fn read(&self) -> &str;

    /// Calls that have different ones are not the same.
    fn fingerprint(&self) -> u64;

    /// What the arguments amount to, as canonical text. Calls of one tool that have the same are the same, and no others.
    fn effective(&self) -> &str;

    /// SHA-256 of [`effective`](Self::effective).
    fn digest(&self) -> Hash;
}

/// A tool and its arguments.
#[cfg(test)]
impl Digested for (&'static str, String) {
    fn tool(&self) -> &str {
        self.0
    }

    fn read(&self) -> &str {
        &self.1
    }

    fn fingerprint(&self) -> u64 {
        self.1.len() as u64
    }

    fn effective(&self) -> &str {
        &self.1
    }

    fn digest(&self) -> Hash {
        Hash::sha256(&self.1)
    }
}
