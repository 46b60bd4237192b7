//! [`Digested`]: canonical text, hashed for those who ask.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::tool::Hash;

/// Canonical JSON and its SHA-256. Most calls never need the hash, and it costs more than writing the text.
#[derive(Clone)]
pub(crate) struct Digested {
    text: Arc<str>,
    hash: OnceLock<Hash>,
}

impl Digested {
    pub(crate) fn of(canonical: impl Into<Arc<str>>) -> Self {
        Self { text: canonical.into(), hash: OnceLock::new() }
    }

    pub(crate) const fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// SHA-256 of the text.
    pub(crate) fn hash(&self) -> Hash {
        *self.hash.get_or_init(|| Hash::sha256(&*self.text))
    }
}

// Arguments stay out of logs.
impl fmt::Debug for Digested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digested").finish_non_exhaustive()
    }
}
