//! Collections of tool names: [`NameMap`], [`RunTools`] for one run, and [`ToolNames`] for a list from an application.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by tool names from the policy or the application.
pub(super) type NameMap<V> = HashMap<Box<str>, V, BuildHasherDefault<NameHasher>>;

/// The only tools that one run may use, by name. Every policy denies any other tool, with the rule `run.tools`.
pub(crate) type RunTools = BTreeSet<Box<str>>;

/// A list of tool names. The trait exists for the compiler error about a single name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of tool names",
    label = "not a list",
    note = "write `[\"namespace__tool\"]` for a single tool"
)]
pub trait ToolNames {
    /// Returns the names.
    fn into_names(self) -> BTreeSet<String>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: AsRef<str>>> ToolNames for I {
    fn into_names(self) -> BTreeSet<String> {
        self.into_iter().map(|name| name.as_ref().to_owned()).collect()
    }
}

/// Returns whether every tool allowed by `one` is allowed by `other`. `None` allows all tools.
pub(crate) fn are_within(one: Option<&RunTools>, other: Option<&RunTools>) -> bool {
    match (one, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one.is_subset(other),
    }
}

/// Returns the tools that both lists allow. `None` allows all tools.
pub(crate) fn common_tools(one: Option<RunTools>, other: Option<RunTools>) -> Option<RunTools> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).cloned().collect()),
        (tools, None) | (None, tools) => tools,
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
        // Reading one overlapping block is faster than reading the remaining bytes one by one.
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
        // `HashMap` uses the low bits for the slot and the high bits for the tag. Multiplying mixes only the high bits.
        self.0 ^ (self.0 >> 32)
    }
}
