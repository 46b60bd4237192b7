//! [`Hash`]: SHA-256 of definitions, catalogs, records and arguments.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::ParseError;

const NOT_A_HASH: ParseError = ParseError::new("not_a_hash", "expected 64 hexadecimal digits");

/// A SHA-256 hash, written as 64 lower-case hexadecimal digits.
///
/// ```
/// use tool_runtime::tool::Hash;
///
/// let text = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// let hash: Hash = text.parse()?;
/// assert_eq!(hash.to_string(), text);
/// assert_eq!(hash.as_ref().len(), 32);
/// assert!("9f86".parse::<Hash>().is_err());
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub(crate) [u8; 32]);

impl Hash {
    /// Returns the hash of these bytes.
    #[must_use]
    pub fn sha256(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// Computes the SHA-256 of several chunks of bytes.
#[derive(Clone, Default)]
pub(crate) struct Hashing(Sha256);

impl Hashing {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

impl AsRef<[u8]> for Hash {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::LowerHex for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(self, f)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        // `from_str_radix` alone would accept a sign.
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NOT_A_HASH);
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(NOT_A_HASH)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = Hash([0xab; 32]);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(format!("{hash:x}"), hash.to_string());
        for text in ["", "ab", &"+1".repeat(32), &"zz".repeat(32), &"é".repeat(32), &"ab".repeat(33)] {
            assert_eq!(text.parse::<Hash>(), Err(NOT_A_HASH), "{text}");
        }
    }
}
