//! [`EvidenceSet`]: the ids that a run has seen, so that invented ids can be refused.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::Violation;
use crate::json::Tree;
use crate::text::pointer;

/// The maximum number of bytes of an id; longer strings are texts that may mention ids.
const LONGEST_ID: usize = 256;

/// The maximum number of ids (`MOST_IDS`) and of bytes of text (`MOST_TEXT`) that one run keeps. An id or a text that
/// does not fit is not evidence.
const MOST_IDS: usize = 100_000;
const MOST_TEXT: usize = 4 << 20;

/// The maximum number of ids of one call that are reported. The check of an id searches all texts of the run, and one
/// id without evidence already refuses the call.
const MOST_REFUSED: usize = 100;

/// The ids that a run has seen in tool results and in the user's texts. `Debug` shows only counts.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvidenceSet {
    ids: HashSet<Box<str>>,
    /// Kept apart, so that the end of one text and the beginning of the next never form an id.
    texts: Vec<Box<str>>,
    /// The number of bytes of all texts.
    bytes: usize,
}

impl EvidenceSet {
    /// Creates an empty set.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the strings and integers of a result, at any depth. Member names are not evidence, because the tool's
    /// author chose them: a member `note` does not show an id `note`.
    pub(crate) fn insert_result(&mut self, result: &Tree<'_>) {
        match result {
            Tree::Null | Tree::Bool(_) | Tree::Float(_) => {}
            Tree::Int(number) => self.insert_id(&number.to_string()),
            Tree::UInt(number) => self.insert_id(&number.to_string()),
            Tree::String(text) => self.insert_id(text),
            Tree::Array(items) => items.iter().for_each(|item| self.insert_result(item)),
            Tree::Object(members) => members.iter().for_each(|(_, value)| self.insert_result(value)),
        }
    }

    /// Adds text of the user, or a result that is prose. An id in it counts if it is a whole word.
    pub(crate) fn insert_text(&mut self, text: &str) {
        let bytes = self.bytes.saturating_add(text.len());
        if !text.trim().is_empty() && bytes < MOST_TEXT {
            self.bytes = bytes;
            self.texts.push(text.into());
        }
    }

    /// Adds the ids and texts of another set.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.texts.iter().for_each(|text| self.insert_text(text));
        other.ids.iter().for_each(|id| self.insert_id(id));
    }

    /// Whether an argument was seen. Only strings and integers can be evidence.
    #[must_use]
    pub(crate) fn contains(&self, argument: &Tree<'_>) -> bool {
        match argument {
            Tree::String(id) => self.contains_id(id),
            Tree::Int(number) => self.contains_id(&number.to_string()),
            Tree::UInt(number) => self.contains_id(&number.to_string()),
            _ => false,
        }
    }

    /// Whether exactly this id was seen. An id with surrounding white space never counts as seen.
    #[must_use]
    pub(crate) fn contains_id(&self, id: &str) -> bool {
        let is_id = !id.is_empty() && id.trim() == id;
        is_id && (self.ids.contains(id) || self.texts.iter().any(|text| mentions(text, id)))
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
        f.debug_struct("EvidenceSet")
            .field("ids", &self.ids.len())
            .field("texts", &self.texts.len())
            .finish_non_exhaustive()
    }
}

/// Whether the text contains the id as a word of its own: `task-12` does not mention `task-1`,
/// `ada@example.org.attacker.net` does not mention `ada@example.org`, and `/a/b` does not mention `a/b`.
fn mentions(text: &str, id: &str) -> bool {
    let joins = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let links =
        |character: char| matches!(character, '.' | '@' | '/' | '\\' | '%' | '+' | '~' | '&' | '?' | '=' | ':' | '#');
    text.match_indices(id).any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + id.len()..).unwrap_or_default());
        let before = before.chars().next_back();
        let mut after = after.chars();
        // `id:T-1` and `#T-1` mention the id, but an id within a longer path or address is not mentioned.
        let longer_before = before.is_some_and(|one| joins(one) || (links(one) && !matches!(one, ':' | '=' | '#')));
        let longer_after = match after.next() {
            Some(one) if joins(one) => true,
            // Punctuation ends the id unless more characters follow it directly.
            Some(one) if links(one) => after.next().is_some_and(|next| joins(next) || links(next)),
            _ => false,
        };
        !longer_before && !longer_after
    })
}

/// The arguments that need evidence and have none.
#[derive(Default)]
pub(in crate::hydrate) struct WithoutEvidence {
    pub(in crate::hydrate) violations: Vec<Violation>,
    /// The pointers of the violations whose hint names a tool that lists the ids.
    pub(in crate::hydrate) lists: Vec<String>,
}

/// The hint for an id that a tool lists.
pub(in crate::hydrate) fn list_with(lister: &str) -> String {
    format!("call `{lister}` to see the ids there are")
}

/// The hint for an id that no tool lists.
pub(in crate::hydrate) const ASK: &str = "ask the user for it";

/// Refuses arguments that need evidence and have none. Each rule maps an argument, or an array of ids, to the tool that
/// lists such ids. The hint names this tool if `lists` returns that the model can call it.
#[must_use]
pub(in crate::hydrate) fn check_evidence(
    arguments: &Tree<'_>,
    rules: &BTreeMap<String, String>,
    seen: &EvidenceSet,
    lists: &dyn Fn(&str) -> bool,
) -> WithoutEvidence {
    let mut without_evidence = WithoutEvidence::default();
    for (name, lister) in rules {
        let Some(argument) = arguments.get(name) else { continue };
        let listed = lists(lister);
        let hint = if listed { list_with(lister) } else { ASK.to_owned() };
        let WithoutEvidence { violations, lists } = &mut without_evidence;
        let mut refuse = |pointer: String, value: &Tree<'_>| {
            if violations.len() < MOST_REFUSED && !value.is_null() && !seen.contains(value) {
                lists.extend(listed.then(|| pointer.clone()));
                let violation = Violation::new(pointer, "evidence", "an id that a tool returned or the user wrote");
                violations.push(violation.with_hint(hint.clone()));
            }
        };
        match argument {
            Tree::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    refuse(format!("{}/{at}", pointer::segment(name)), item);
                }
            }
            value => refuse(pointer::segment(name), value),
        }
    }
    without_evidence
}
