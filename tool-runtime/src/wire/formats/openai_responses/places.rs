//! [`Places`]: finds the place of each item in the turn (rule S1 of `wire`).

use std::collections::{BTreeMap, HashMap, HashSet};

/// The identity of an item: its index in the output, or its own id if a server sends no index.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) index: Option<i64>,
    pub(super) id: &'a str,
}

/// The place of an item in the turn.
#[derive(Clone, Copy)]
pub(super) enum ItemPlace {
    Call(usize),
    /// The index of the item's first part.
    Part(usize),
}

/// The places of the items so far.
#[derive(Default)]
pub(super) struct Places {
    /// A map in order, because a turn has few items and hashing an index would cost more than the search.
    by_index: BTreeMap<i64, ItemPlace>,
    by_id: HashMap<Box<str>, (Option<i64>, ItemPlace)>,
    calls: HashSet<usize>,
}

impl Places {
    pub(super) fn get(&self, key: Key<'_>) -> Option<ItemPlace> {
        let by_id = || {
            let (index, place) = self.by_id.get(key.id)?;
            // Two items with different indices are different items, even if they share an id (S1).
            (index.is_none() || key.index.is_none()).then_some(*place)
        };
        key.index.and_then(|index| self.by_index.get(&index).copied()).or_else(by_id)
    }

    pub(super) fn set(&mut self, key: Key<'_>, place: ItemPlace) {
        if let ItemPlace::Call(call) = place {
            self.calls.insert(call);
        }
        if let Some(index) = key.index {
            self.by_index.insert(index, place);
        }
        if !key.id.is_empty() || key.index.is_none() {
            self.by_id.insert(key.id.into(), (key.index, place));
        }
    }

    /// Whether an event of this call arrived.
    pub(super) fn has(&self, call: usize) -> bool {
        self.calls.contains(&call)
    }
}
