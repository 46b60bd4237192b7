//! [`Digests`]: the digests that replace arguments in records, and their key.

use std::sync::OnceLock;

use crate::call::{ArgumentDigest, DigestKey};
use crate::tool::Hash;

/// The key for digests: set by the application, or read from the store.
#[derive(Default)]
pub(in crate::runner) struct Digests {
    key: OnceLock<DigestKey>,
    /// A random key, used while the store's key has not been read. Its digests are comparable only with each other.
    own: OnceLock<DigestKey>,
}

impl Digests {
    pub(in crate::runner) fn new(key: Option<DigestKey>) -> Self {
        let digests = Self::default();
        if let Some(key) = key {
            digests.key.get_or_init(|| key);
        }
        digests
    }

    /// Whether the key is known, so that the store need not be read.
    pub(in crate::runner) fn has_key(&self) -> bool {
        self.key.get().is_some()
    }

    /// Sets the store's key, unless a key is set.
    pub(in crate::runner) fn set_key(&self, key: DigestKey) {
        self.key.get_or_init(|| key);
    }

    fn key(&self) -> &DigestKey {
        self.key.get().unwrap_or_else(|| self.own.get_or_init(DigestKey::generate))
    }

    /// Returns the digest of arguments with this hash, for records.
    pub(in crate::runner) fn of(&self, plain: Hash) -> ArgumentDigest {
        self.key().digest(plain)
    }

    /// Returns an id that is derived from an idempotency key and does not reveal the arguments in it.
    pub(in crate::runner) fn id_of(&self, idempotency_key: &str) -> Hash {
        self.key().code("graph", idempotency_key.as_bytes())
    }
}

#[cfg(feature = "mcp-server")]
impl Digests {
    /// Returns an id derived from the values that identify a call. Calls with equal values have the same id.
    pub(in crate::runner) fn asked(&self, call: &[u8]) -> Hash {
        self.key().code("asked", call)
    }
}
