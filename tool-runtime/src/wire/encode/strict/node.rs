//! [`Node`]: a small JSON tree that keeps the order of keys and the digits of numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::text::pointer;

/// Deeper documents are not parsed, because each level parses its text again.
const MAX_DEPTH: usize = 64;

#[derive(Clone)]
pub(super) enum Node {
    /// The JSON text of a scalar.
    Scalar(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Reads JSON text; `None` if it is not JSON or too deep.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::read(serde_json::from_str::<&RawValue>(text).ok()?.get(), MAX_DEPTH)
    }

    fn read(raw: &str, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        match raw.as_bytes().first()? {
            b'{' => {
                let Entries(entries) = serde_json::from_str(raw).ok()?;
                let read = |(key, raw): (String, &RawValue)| Some((key, Self::read(raw.get(), depth)?));
                entries.into_iter().map(read).collect::<Option<_>>().map(Self::Object)
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
                items.into_iter().map(|raw| Self::read(raw.get(), depth)).collect::<Option<_>>().map(Self::Array)
            }
            // Kept as text, because parsing `1.0` or a long integer could change its digits.
            _ => Some(Self::Scalar(raw.to_owned())),
        }
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Scalar(Value::from(text).to_string())
    }

    pub(super) fn null() -> Self {
        Self::Scalar("null".to_owned())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(text) if text == "null")
    }

    pub(super) fn is(&self, scalar: &str) -> bool {
        matches!(self, Self::Scalar(text) if text == scalar)
    }

    /// The string; `None` for other values.
    pub(super) fn as_str(&self) -> Option<String> {
        match self {
            Self::Scalar(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }

    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    pub(super) fn entries(&self) -> &[(String, Self)] {
        match self {
            Self::Object(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self {
            Self::Object(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(super) fn set(&mut self, key: &str, value: Self) {
        match self.get_mut(key) {
            Some(slot) => *slot = value,
            None => {
                if let Self::Object(entries) = self {
                    entries.push((key.to_owned(), value));
                }
            }
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Self> {
        let Self::Object(entries) = self else { return None };
        let at = entries.iter().position(|(name, _)| name == key)?;
        Some(entries.remove(at).1)
    }

    /// The target of a local reference (`#` and a JSON pointer).
    pub(super) fn resolve(&self, reference: &str) -> Option<&Self> {
        pointer::split(reference.strip_prefix('#')?)?.try_fold(self, |node, step| match node {
            Self::Object(_) => node.get(&step),
            Self::Array(items) => items.get(pointer::index(&step)?),
            Self::Scalar(_) => None,
        })
    }
}

/// The JSON text, without white space.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    let key = Value::from(key.as_str());
                    write!(f, "{}{key}:{value}", if at == 0 { "" } else { "," })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The entries of an object, in order, including repeated keys.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Entries<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Returns the pointer to the member `name` of the value at `pointer`.
pub(super) fn step(pointer: &str, name: &str) -> String {
    let mut pointer = pointer.to_owned();
    pointer::push(&mut pointer, name);
    pointer
}
