//! [`PickIndex`]: the words of each field of each tool. Tools are added and removed without rebuilding the rest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::catalog::pick::fields::{FIELDS, SETTINGS, texts};
use crate::catalog::pick::words::words;
use crate::tool::{ToolName, ToolSpec};

/// The number of times that a word occurs in each field of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) slot: u32,
    pub(super) counts: [u8; FIELDS],
}

pub(super) struct Indexed {
    pub(super) name: ToolName,
    /// The number of words in each field.
    pub(super) lengths: [u32; FIELDS],
    stems: Vec<Arc<str>>,
}

/// An index over definitions, for picking from tools that are in no catalog, or from a part of a catalog.
/// [`ToolCatalog::pick`](crate::ToolCatalog::pick) picks from a whole catalog.
///
/// ```
/// use tool_runtime::catalog::{PickIndex, PickOptions};
/// use tool_runtime::{ToolError, definition, tool};
///
/// /// Lists the open tasks.
/// #[tool(name = "tasks__list", effect = read_only, redact = ["$"])]
/// fn list() -> Result<Vec<String>, ToolError> { Ok(Vec::new()) }
///
/// let mut index = PickIndex::default();
/// let slot = index.insert(&definition!(list)?);
/// let among = |one: usize| one == slot;
/// assert_eq!(index.pick("Which tasks are open?", &PickOptions::new(1), &among)[0].name.as_str(), "tasks__list");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct PickIndex {
    postings: HashMap<Arc<str>, Vec<Posting>>,
    /// The tools by slot; `None` for a slot whose tool was removed.
    tools: Vec<Option<Indexed>>,
    slots: HashMap<ToolName, u32>,
    free: Vec<u32>,
    /// The number of words in each field of all tools.
    totals: [u64; FIELDS],
}

impl PickIndex {
    /// Adds a tool and returns its slot. Replaces a tool of the same name.
    pub fn insert(&mut self, spec: &ToolSpec) -> usize {
        self.remove(spec.name.as_str());
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tools.push(None);
            u32::try_from(self.tools.len() - 1).unwrap_or(u32::MAX)
        });
        let (lengths, counted) = count(spec);
        let mut stems = Vec::with_capacity(counted.len());
        for (stem, counts) in counted {
            let stem = match self.postings.get_key_value(stem.as_str()) {
                Some((known, _)) => Arc::clone(known),
                None => Arc::from(stem),
            };
            self.postings.entry(Arc::clone(&stem)).or_default().push(Posting { slot, counts });
            stems.push(stem);
        }
        for (total, length) in self.totals.iter_mut().zip(lengths) {
            *total += u64::from(length);
        }
        self.slots.insert(spec.name.clone(), slot);
        if let Some(tool) = self.tools.get_mut(slot as usize) {
            *tool = Some(Indexed { name: spec.name.clone(), lengths, stems });
        }
        slot as usize
    }

    /// Removes a tool; returns whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(slot) = self.slots.remove(name) else { return false };
        let Some(tool) = self.tools.get_mut(slot as usize).and_then(Option::take) else { return false };
        for stem in &tool.stems {
            if let Some(postings) = self.postings.get_mut(stem) {
                postings.retain(|posting| posting.slot != slot);
                if postings.is_empty() {
                    self.postings.remove(stem);
                }
            }
        }
        for (total, length) in self.totals.iter_mut().zip(tool.lengths) {
            *total -= u64::from(length);
        }
        self.free.push(slot);
        true
    }

    /// Returns the number of slots, including the slots of removed tools.
    pub(super) fn slots(&self) -> usize {
        self.tools.len()
    }

    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.slots.get(name).map(|slot| *slot as usize)
    }

    pub(super) fn tool(&self, slot: usize) -> Option<&Indexed> {
        self.tools.get(slot)?.as_ref()
    }

    pub(super) fn postings(&self, stem: &str) -> &[Posting] {
        self.postings.get(stem).map_or(&[], Vec::as_slice)
    }

    /// Returns the rarity of a word that occurs in `having` tools: the inverse document frequency of BM25, which is
    /// never negative.
    #[allow(clippy::cast_precision_loss, reason = "counts stay below 2^52")]
    pub(super) fn rarity(&self, having: usize) -> f64 {
        let (all, having) = (self.slots.len() as f64, having as f64);
        ((all - having + 0.5) / (having + 0.5)).ln_1p()
    }

    /// Returns `(base, slope)` of each field. A count is divided by `base + slope * length`.
    #[allow(clippy::cast_precision_loss, reason = "counts stay below 2^52")]
    pub(super) fn discounts(&self) -> [(f64, f64); FIELDS] {
        let tools = self.slots.len().max(1) as f64;
        std::array::from_fn(|at| {
            let average = (self.totals[at] as f64 / tools).max(1.0);
            (1.0 - SETTINGS[at].length, SETTINGS[at].length / average)
        })
    }
}

/// Returns the length of each field of a definition, and how often each word occurs in each field.
fn count(spec: &ToolSpec) -> ([u32; FIELDS], BTreeMap<String, [u8; FIELDS]>) {
    let mut counted = BTreeMap::<String, [u8; FIELDS]>::new();
    let mut lengths = [0; FIELDS];
    for (at, text) in texts(spec).iter().enumerate() {
        let found = words(text);
        lengths[at] = u32::try_from(found.len()).unwrap_or(u32::MAX);
        if SETTINGS[at].pairs {
            for pair in found.windows(2) {
                let counts = counted.entry(joined(&pair[0].stem, &pair[1].stem)).or_default();
                counts[at] = counts[at].saturating_add(1);
            }
        }
        for word in found {
            let counts = counted.entry(word.stem).or_default();
            counts[at] = counts[at].saturating_add(1);
        }
    }
    (lengths, counted)
}

/// Joins two words, so that `time zone` and `timezone` find each other.
pub(super) fn joined(first: &str, second: &str) -> String {
    [first, second].concat()
}
