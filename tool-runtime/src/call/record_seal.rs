//! [`RecordSeal`]: lets the hash chain of records still verify after the values of a record were erased.

use serde::{Deserialize, Serialize};

use crate::tool::{Hash, Hashing};

/// The field of a record that states how its hash is computed. With this field, the hash covers the members that an
/// erasure keeps, and a digest of the whole record. Without it, the hash covers the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordSeal {
    /// Random bytes, so that the digest of the values does not reveal the values. They are erased with the values.
    Salt(Hash),
    /// The digest of values that were erased.
    Erased(Hash),
}

impl RecordSeal {
    /// Creates a random salt.
    pub(crate) fn random() -> Self {
        // Two random ids hold 244 bits of the system's randomness.
        let random = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()];
        Self::Salt(Hash::sha256(random.concat()))
    }

    /// Returns the digest of a record with this seal, given its canonical JSON. `None` if its values were erased.
    pub(crate) fn digest(&self, text: &str) -> Option<Hash> {
        let Self::Salt(salt) = self else { return None };
        let mut hashing = Hashing::default();
        hashing.update(&salt.0);
        hashing.update(text.as_bytes());
        Some(hashing.finish())
    }
}
