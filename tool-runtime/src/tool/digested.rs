//! [`Digested`]: the arguments of a call, for modules that only compare or store them.

use crate::tool::Hash;

/// The arguments of a call, as the tool gets them. Canonical text and hash are computed on demand, because they cost as
/// much as all other stages of a small call, and most calls need neither.
pub(crate) trait Digested: Send + Sync {
    /// Returns the name of the tool.
    fn tool(&self) -> &str;

    /// Returns the original text. Calls of one tool with the same text are equal.
    fn read(&self) -> &str;

    /// Returns a fast hash of the arguments. Calls with different fingerprints are not equal.
    fn fingerprint(&self) -> u64;

    /// Returns the effective arguments as canonical text. Calls of one tool are equal exactly if their texts are.
    fn effective(&self) -> &str;

    /// Returns the SHA-256 of [`effective`](Self::effective).
    fn effective_digest(&self) -> Hash;
}

/// The name of a tool and its arguments.
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

    fn effective_digest(&self) -> Hash {
        Hash::sha256(&self.1)
    }
}
