//! [`Digests`]: what stands for arguments in records, and the key that it is made with.

use std::sync::OnceLock;

use crate::call::{ArgumentDigest, DigestKey};
use crate::contain::discard;
use crate::runner::Run;
use crate::runner::report::telemetry;
use crate::tool::Hash;

/// The key of a runner: the application's, or the store's once it was read.
#[derive(Default)]
pub(in crate::runner) struct Digests {
    key: OnceLock<DigestKey>,
    /// The substitute where the store's key could not be read. Its digests compare only with those of this runner.
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

    fn key(&self) -> &DigestKey {
        self.key.get().unwrap_or_else(|| self.own.get_or_init(DigestKey::generate))
    }

    /// The digest that a record shows of arguments with this hash.
    pub(in crate::runner) fn of(&self, plain: Hash) -> ArgumentDigest {
        self.key().digest(plain)
    }

    /// An id that follows from an idempotency key and does not give away the arguments that are in that.
    pub(in crate::runner) fn id_of(&self, idempotency_key: &str) -> Hash {
        self.key().code("graph", idempotency_key.as_bytes())
    }
}

#[cfg(feature = "mcp-server")]
impl Digests {
    /// An id of everything that makes two calls the same.
    pub(in crate::runner) fn asked(&self, call: &[u8]) -> Hash {
        self.key().code("asked", call)
    }
}

impl Run {
    /// Reads the store's key, once for a runner. Digests that are made before are made with a key of this runner.
    pub(in crate::runner) async fn digests(&self) -> &Digests {
        let shared = self.shared();
        if shared.digests.key.get().is_none() {
            match Box::pin(shared.store.digest_key()).await {
                Ok(key) => {
                    shared.digests.key.get_or_init(|| key);
                }
                Err(error) => discard(telemetry::store_unread(self, error)),
            }
        }
        &shared.digests
    }
}
