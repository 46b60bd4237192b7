//! [`RecordSeal`]: how a record is sealed in two parts, so that its values can be erased and its chain still verifies.

use serde::{Deserialize, Serialize};

use crate::tool::{Hash, Hashing};

/// The field of a sealed record that states how it is sealed. A record without this field is sealed as one text.
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
