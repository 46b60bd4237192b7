//! [`ArgumentDigest`]: the keyed hash of arguments in records. Only the store's owner has the [`DigestKey`].
//!
//! A plain hash would reveal a sensitive argument: the record shows all other arguments, and a program can try every
//! PIN or date of birth within a second.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::error::ParseError;
use crate::tool::Hash;

const NOT_A_DIGEST: ParseError =
    ParseError::new("not_a_digest", "expected the id of a key, a colon and 64 hexadecimal digits");

/// The HMAC-SHA-256 of arguments, with the id of its [`DigestKey`]: `1a2b3c4d:9f86d0..`.
///
/// Under one key, equal arguments have equal digests. Digests under different keys cannot be compared. Guessing
/// arguments from a digest requires the key.
///
/// ```
/// use tool_runtime::call::ArgumentDigest;
///
/// let text = "1a2b3c4d:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// let digest: ArgumentDigest = text.parse()?;
/// assert_eq!((digest.key_id().as_deref(), digest.to_string().as_str()), (Some("1a2b3c4d"), text));
/// # Ok::<(), tool_runtime::error::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArgumentDigest {
    /// `None` in records from before digests had keys.
    key: Option<[u8; 4]>,
    digest: Hash,
}

impl ArgumentDigest {
    /// Creates a digest from a plain hash, for a reader that has the arguments anyway.
    pub(crate) const fn plain(digest: Hash) -> Self {
        Self { key: None, digest }
    }

    /// The placeholder in an incomplete record.
    pub(crate) const NONE: Self = Self { key: None, digest: Hash([0; 32]) };

    /// Returns the id of the key, eight hexadecimal digits that do not reveal the key. `None` for a plain hash in a
    /// record that was written before digests had keys, and in a
    /// [`HydrationResult`](crate::hydrate::HydrationResult).
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        self.key.map(|id| KeyId(id).to_string())
    }
}

/// The key of [`ArgumentDigest`]s: 32 random bytes. `Debug` shows only its id.
///
/// By default, the runner creates a key once and keeps it in the store. To keep the key apart from the records, set one
/// with [`RunnerBuilder::digest_key`](crate::runner::RunnerBuilder::digest_key).
///
/// ```
/// use tool_runtime::call::DigestKey;
///
/// let key = DigestKey::new([7; 32]);
/// assert_eq!(format!("{key:?}"), format!("DigestKey({})", key.id()));
/// assert_ne!(key.id(), DigestKey::new([8; 32]).id());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    /// Creates a key from 32 bytes of a cryptographic source of randomness. Do not pass a password, because the bytes
    /// are not stretched.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the id of the key, with which its digests begin.
    #[must_use]
    pub fn id(&self) -> String {
        KeyId(self.id_bytes()).to_string()
    }

    /// Creates a random key.
    pub(crate) fn generate() -> Self {
        // Two random ids have 244 bits of the system's randomness. They do not come from the pool of random ids.
        let random = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()];
        Self(Hash::sha256(random.concat()).0)
    }

    /// Returns the keyed digest for the plain hash of arguments or of a model's text.
    pub(crate) fn digest(&self, plain: Hash) -> ArgumentDigest {
        ArgumentDigest { key: Some(self.id_bytes()), digest: self.code("arguments", &plain.0) }
    }

    /// Returns the authentication code of bytes, which differs for each purpose.
    pub(crate) fn code(&self, purpose: &str, bytes: &[u8]) -> Hash {
        // HMAC accepts keys of every length, so this does not fail.
        let Ok(mut code) = Hmac::<Sha256>::new_from_slice(&self.0) else { return Hash([0; 32]) };
        for part in [purpose.as_bytes(), &[0], bytes] {
            code.update(part);
        }
        Hash(code.finalize().into_bytes().into())
    }

    /// Signs bytes for one purpose. The result contains the id of the key, like the digest of arguments.
    pub(crate) fn sign(&self, purpose: &str, bytes: &[u8]) -> ArgumentDigest {
        ArgumentDigest { key: Some(self.id_bytes()), digest: self.code(purpose, bytes) }
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn id_bytes(&self) -> [u8; 4] {
        let [first, second, third, fourth, ..] = self.code("id", &[]).0;
        [first, second, third, fourth]
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestKey({})", self.id())
    }
}

struct KeyId([u8; 4]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for ArgumentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = self.key {
            write!(f, "{}:", KeyId(id))?;
        }
        fmt::Display::fmt(&self.digest, f)
    }
}

impl fmt::Debug for ArgumentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ArgumentDigest {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let read = |digest: &str| digest.parse().map_err(|_| NOT_A_DIGEST);
        let Some((id, digest)) = text.split_once(':') else { return Ok(Self { key: None, digest: read(text)? }) };
        let is_id = id.len() == 8 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let key = u32::from_str_radix(id, 16).ok().filter(|_| is_id).ok_or(NOT_A_DIGEST)?;
        Ok(Self { key: Some(key.to_be_bytes()), digest: read(digest)? })
    }
}

impl Serialize for ArgumentDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArgumentDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_hmac() {
        // The keys of RFC 4231 have other lengths, so this computes HMAC from its definition.
        let key = DigestKey::new([0x0b; 32]);
        let block = |pad: u8| [[0x0b ^ pad; 32], [pad; 32]].concat();
        let inner = Hash::sha256([block(0x36).as_slice(), b"arguments\0", &[9; 32]].concat());
        let outer = Hash::sha256([block(0x5c).as_slice(), &inner.0].concat());
        assert_eq!(key.digest(Hash([9; 32])).digest, outer);
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = DigestKey::new([1; 32]).digest(Hash([2; 32]));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        let hash = Hash([2; 32]).to_string();
        for text in ["", ":", &hash[1..], &format!("1234567:{hash}"), &format!("+1234567:{hash}"), "12345678:ab"] {
            assert_eq!(text.parse::<ArgumentDigest>(), Err(NOT_A_DIGEST), "{text}");
        }
    }

    #[test]
    fn keys_are_made_at_random() {
        assert_ne!(DigestKey::generate(), DigestKey::generate());
    }
}
