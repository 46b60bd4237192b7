//! [`StoredDigestKey`]: the key for digests of arguments.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::DigestKey;
use crate::tool::Hash;

/// A [`DigestKey`] as the document that a store keeps. `Debug` shows only the id of the key.
#[derive(Clone)]
pub(crate) struct StoredDigestKey(pub(in crate::store) DigestKey);

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
