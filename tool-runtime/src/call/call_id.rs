//! [`CallId`]: the id of a call within its run.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrayvec::ArrayString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::random_id;

/// The id of a call: the provider's id, or a generated id if the provider sent none. It is unique in its run, and stays
/// the same from the model's call to its result.
///
/// ```
/// use tool_runtime::call::CallId;
///
/// let id = CallId::new("call_1");
/// assert_eq!(id.as_str(), "call_1");
/// // Some servers send no id.
/// assert!(CallId::new("").as_str().starts_with("call_"));
/// ```
#[derive(Clone)]
pub struct CallId(Text);

/// Each call copies its id four times, so an id of the usual length is stored inline, without an allocation or a
/// reference count. OpenAI's ids have 29 bytes, Anthropic's 30, and generated ids 37.
#[derive(Clone)]
enum Text {
    Short(ArrayString<SHORT_BYTES>),
    Long(Arc<str>),
}

const SHORT_BYTES: usize = 40;

impl CallId {
    /// Creates an id from the provider's id. An empty text is replaced by a fresh id.
    #[must_use]
    pub fn new(id: &str) -> Self {
        if id.is_empty() { Self::generate() } else { Self::of(id) }
    }

    /// Creates a fresh id in `[a-zA-Z0-9_-]`, 37 characters long.
    #[must_use]
    pub fn generate() -> Self {
        const PREFIX: &[u8] = b"call_";
        let mut text = [0; PREFIX.len() + uuid::fmt::Simple::LENGTH];
        let (prefix, digits) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        let id = random_id().simple();
        id.encode_lower(digits);
        // Written in place, because formatting allocates and takes five times as long.
        std::str::from_utf8(&text).map_or_else(|_| Self::of(&format!("call_{id}")), Self::of)
    }

    fn of(id: &str) -> Self {
        Self(ArrayString::from(id).map_or_else(|_| Text::Long(id.into()), Text::Short))
    }

    /// Whether the id has the form of a generated id.
    pub(crate) fn is_generated(&self) -> bool {
        let is_hex = |digits: &str| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.as_str().strip_prefix("call_").is_some_and(is_hex)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short(text) => text,
            Text::Long(text) => text,
        }
    }
}

// An id hashes and compares as its text, so that a map of ids can be searched by text.
impl Borrow<str> for CallId {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for CallId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq for CallId {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CallId {}

impl PartialOrd for CallId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CallId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl AsRef<str> for CallId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for CallId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for CallId {
    fn from(id: String) -> Self {
        Self::new(&id)
    }
}

impl From<&CallId> for CallId {
    fn from(id: &CallId) -> Self {
        id.clone()
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A stored id is read back unchanged, even an empty one.
        Cow::<str>::deserialize(deserializer).map(|id| Self::of(&id))
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn an_id_is_its_text_whatever_its_length() {
        let keyed = std::hash::RandomState::new();
        for length in 1..=3 * SHORT_BYTES {
            for text in ["x".repeat(length), "é".repeat(length)] {
                let id = CallId::new(&text);
                assert_eq!((id.as_str(), id.to_string(), &id), (&*text, text.clone(), &CallId::from(text.clone())));
                assert_eq!(keyed.hash_one(&id), keyed.hash_one(&*text));
                let written = serde_json::to_string(&id).unwrap();
                assert_eq!(written, serde_json::to_string(&text).unwrap());
                assert_eq!(serde_json::from_str::<CallId>(&written).unwrap(), id);
                assert!(id > CallId::new("!") && id != CallId::new(&format!("{text}x")));
            }
        }
        // A stored id is read back unchanged; only a new, empty one is replaced.
        assert_eq!(serde_json::from_str::<CallId>(r#""""#).unwrap().as_str(), "");
        assert!(CallId::new("").is_generated() && CallId::generate() != CallId::generate());
    }
}
