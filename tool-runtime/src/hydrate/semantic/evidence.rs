//! [`EvidenceSet`]: what a run has seen, so that an id which nobody showed it can be refused.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::Violation;
use crate::json::Tree;
use crate::text::pointer::segment;

/// Longer strings are texts that may mention ids, not ids.
const LONGEST_ID: usize = 256;

/// What one run keeps at most: so many ids, and so many bytes of text. What comes later is not evidence.
const MOST_IDS: usize = 100_000;
const MOST_TEXT: usize = 4 << 20;

/// Ids that a run has seen in results of tools and in what the user wrote. `Debug` shows only counts.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceSet {
    ids: HashSet<Box<str>>,
    text: String,
}

impl EvidenceSet {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the strings and integers of a result, at any depth, member names included: maps are keyed by ids.
    pub fn insert_result(&mut self, result: &Tree<'_>) {
        match result {
            Tree::Null | Tree::Bool(_) | Tree::Float(_) => {}
            Tree::Int(number) => self.insert_id(&number.to_string()),
            Tree::UInt(number) => self.insert_id(&number.to_string()),
            Tree::String(text) => self.insert_id(text),
            Tree::Array(items) => items.iter().for_each(|item| self.insert_result(item)),
            Tree::Object(members) => {
                for (name, value) in members {
                    self.insert_id(name);
                    self.insert_result(value);
                }
            }
        }
    }

    /// Adds a text that the user wrote, or a result that is prose: an id counts where it stands as a word.
    pub fn insert_text(&mut self, text: &str) {
        if self.text.len() + text.len() < MOST_TEXT {
            // A boundary between two texts.
            self.text.push('\n');
            self.text.push_str(text);
        }
    }

    /// Adds everything that another set has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.insert_text(&other.text);
        other.ids.iter().for_each(|id| self.insert_id(id));
    }

    /// Whether an argument was seen: a string or an integer. Other values are never evidence.
    #[must_use]
    pub fn contains(&self, argument: &Tree<'_>) -> bool {
        match argument {
            Tree::String(id) => self.contains_id(id),
            Tree::Int(number) => self.contains_id(&number.to_string()),
            Tree::UInt(number) => self.contains_id(&number.to_string()),
            _ => false,
        }
    }

    /// Whether a text was seen as a whole.
    #[must_use]
    pub fn contains_id(&self, id: &str) -> bool {
        let id = id.trim();
        !id.is_empty() && (self.ids.contains(id) || mentions(&self.text, id))
    }

    fn insert_id(&mut self, text: &str) {
        let text = text.trim();
        if text.len() > LONGEST_ID {
            self.insert_text(text);
        } else if !text.is_empty() && self.ids.len() < MOST_IDS && !self.ids.contains(text) {
            self.ids.insert(text.into());
        }
    }
}

impl fmt::Debug for EvidenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvidenceSet").field("ids", &self.ids.len()).field("text", &self.text.len()).finish()
    }
}

/// The id stands in the text and is not a part of a longer word: `task-1` is not seen in `task-12`.
fn mentions(text: &str, id: &str) -> bool {
    let joins = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    text.match_indices(id).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + id.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Refuses arguments that have to have been seen and were not. Each pair names an argument and the tool that lists
/// such ids; an argument may be an array of them.
#[must_use]
pub fn check_evidence<A: AsRef<str>, B: AsRef<str>>(
    arguments: &Tree<'_>,
    rules: &[(A, B)],
    seen: &EvidenceSet,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, lister) in rules {
        let Some(argument) = arguments.get(name.as_ref()) else { continue };
        let mut refuse = |pointer: String, value: &Tree<'_>| {
            if !value.is_null() && !seen.contains(value) {
                let violation = Violation::new(pointer, "evidence", "an id that a tool returned or the user wrote");
                violations.push(violation.with_hint(format!("call `{}` to see the ids there are", lister.as_ref())));
            }
        };
        match argument {
            Tree::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    refuse(format!("{}/{at}", segment(name.as_ref())), item);
                }
            }
            value => refuse(segment(name.as_ref()), value),
        }
    }
    violations
}
