//! [`CallIds`]: the ids of the calls that a run has had.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::CallId;

/// The maximum number of distinct call ids of a run, which bounds the memory of their set.
pub(in crate::runner) const MAX_CALLS: usize = 100_000;

/// The result of registering a call id. Only `First` permits the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Taken {
    First,
    /// The id was used before; no second call may run under it.
    Again,
    /// The run has reached the maximum number of ids.
    TooMany,
}

/// A set of call ids: the texts in one buffer, and a hash table of their positions.
///
/// Every call looks up one slot of the table. A table of the ids themselves would be six times as large, and in a run
/// of many calls it would not fit in the caches of a core.
#[derive(Clone, Default)]
pub(in crate::runner) struct CallIds {
    texts: String,
    table: HashTable<Span>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct Span {
    start: u32,
    length: u32,
}

impl Span {
    fn of(self, texts: &str) -> &str {
        let start = self.start as usize;
        texts.get(start..start + self.length as usize).unwrap_or_default()
    }
}

impl CallIds {
    /// Registers an id.
    #[inline]
    pub(in crate::runner) fn take(&mut self, id: &CallId) -> Taken {
        self.insert(id.as_str())
    }

    /// Returns the number of ids.
    #[cfg(feature = "mcp-server")]
    pub(in crate::runner) fn len(&self) -> usize {
        self.table.len()
    }

    fn insert(&mut self, id: &str) -> Taken {
        let Self { texts, table, hasher } = self;
        let hash = hasher.hash_one(id);
        if table.find(hash, |place| place.of(texts) == id).is_some() {
            return Taken::Again;
        }
        let (Ok(start), Ok(length)) = (u32::try_from(texts.len()), u32::try_from(id.len())) else {
            return Taken::TooMany;
        };
        if table.len() >= MAX_CALLS {
            return Taken::TooMany;
        }
        texts.push_str(id);
        table.insert_unique(hash, Span { start, length }, |place| hasher.hash_one(place.of(texts)));
        Taken::First
    }
}

impl Serialize for CallIds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.table.iter().map(|place| place.of(&self.texts)))
    }
}

impl<'de> Deserialize<'de> for CallIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Ids)
    }
}

struct Ids;

impl<'de> Visitor<'de> for Ids {
    type Value = CallIds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of call ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<CallIds, A::Error> {
        let mut seen = CallIds::default();
        while let Some(id) = ids.next_element::<CallId>()? {
            // A snapshot contains each id once, and never more than the maximum number.
            seen.take(&id);
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_once_here_and_in_a_restored_run() {
        let ids: Vec<_> = (0..1_000).map(|at| CallId::new(&format!("{at}").repeat(at % 40 + 1))).collect();
        let mut seen = CallIds::default();
        assert!(ids.iter().all(|id| seen.take(id) == Taken::First));
        assert!(ids.iter().all(|id| seen.take(id) == Taken::Again));
        let saved = serde_json::to_string(&seen).unwrap();
        let mut restored: CallIds = serde_json::from_str(&saved).unwrap();
        assert!(ids.iter().all(|id| restored.take(id) == Taken::Again));
        assert_eq!(restored.take(&CallId::new("new")), Taken::First);
        assert!(serde_json::from_str::<CallIds>(r#"{"a":1}"#).is_err());
    }

    #[test]
    fn ids_over_the_maximum_are_refused() {
        let mut seen = CallIds::default();
        assert!((0..MAX_CALLS).all(|at| seen.take(&CallId::new(&at.to_string())) == Taken::First));
        assert_eq!(seen.take(&CallId::new("one more")), Taken::TooMany);
        assert_eq!(seen.take(&CallId::new("7")), Taken::Again);
    }
}
