//! Maps keyed by tool names, and [`RunTools`], the tools of one run.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A map keyed by names that the policy or the application wrote.
pub(super) type NameMap<V> = HashMap<Box<str>, V, BuildHasherDefault<NameHasher>>;

/// The tools of one run, by name. Any other tool is refused, by every executor.
#[derive(Clone, Default, PartialEq)]
pub struct RunTools(HashSet<Box<str>, BuildHasherDefault<NameHasher>>);

impl RunTools {
    /// Whether the run has this tool.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names
    }

    /// Returns whether every tool allowed by `one` is allowed by `other`. `None` is a run that does not narrow its
    /// tools.
    pub(crate) fn within(one: Option<&Self>, other: Option<&Self>) -> bool {
        match (one, other) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(one), Some(other)) => one.0.is_subset(&other.0),
        }
    }

    /// The tools of both.
    pub(crate) fn intersection(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self(one.0.intersection(&other.0).cloned().collect())),
            (tools, None) | (None, tools) => tools,
        }
    }
}

impl Serialize for RunTools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl<S: AsRef<str>> FromIterator<S> for RunTools {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(|name| name.as_ref().into()).collect())
    }
}

impl fmt::Debug for RunTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A multiplying hash, several times faster than the standard one on short names. Only names from policies and
/// applications are ever inserted, so collisions cannot be provoked from outside.
#[derive(Default)]
pub(super) struct NameHasher(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        // One block that overlaps the one before is faster than the remaining bytes one by one.
        let last = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last),
            None => rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        self.add(last);
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        // The table takes its slot from the low bits and its tag from the high ones; multiplying fills only the latter.
        self.0 ^ (self.0 >> 32)
    }
}
