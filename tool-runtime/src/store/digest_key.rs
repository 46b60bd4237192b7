//! The store's own key for digests of arguments, created on first use.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::DigestKey;
use crate::store::{Document, Key, StoreError, StoredDocument, Transaction};
use crate::tool::Hash;

/// A [`DigestKey`] as the document that a store keeps. Its `Debug` shows its id only.
#[derive(Clone)]
pub(crate) struct StoredDigestKey(DigestKey);

impl Serialize for StoredDigestKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Hash(*self.0.bytes()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredDigestKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Hash::deserialize(deserializer).map(|hash| Self(DigestKey::new(hash.0)))
    }
}

impl fmt::Debug for StoredDigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the key in a document. `None` if the store has none yet.
pub(crate) fn read(document: Option<StoredDocument>) -> Option<DigestKey> {
    match document.map(|stored| stored.document) {
        Some(Document::DigestKey(key)) => Some(key.0),
        _ => None,
    }
}

/// Returns the store's key, which becomes `candidate` if it has none. All processes get the same key.
pub(crate) fn get_or_insert(transaction: &mut Transaction, candidate: &DigestKey) -> Result<DigestKey, StoreError> {
    if let Some(Document::DigestKey(key)) = transaction.get(&Key::digest_key()) {
        return Ok(key.0.clone());
    }
    transaction.set(&Key::digest_key(), Document::DigestKey(StoredDigestKey(candidate.clone())))?;
    Ok(candidate.clone())
}
