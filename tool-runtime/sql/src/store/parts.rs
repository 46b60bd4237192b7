//! Stores the long text of a document in parts, cut by content. A write adds only new parts: unchanged text, such as
//! policies and earlier messages, is not written again. A renewed lease writes no part.
//!
//! A document has a list of the names of its parts. A long list is cut in the same way: its pieces are stored as parts,
//! and a shorter list has their names. A write therefore reads and writes only a few parts of each level, even if the
//! text is very long.

use std::collections::{BTreeMap, BTreeSet};

use tool_runtime::store::{Key, StoreError, StoredDocument};
use tool_runtime::tool::Hash;

use crate::store::text::columns;

/// The binary logarithm of the average distance between two possible cuts, in bytes.
const BITS: u32 = 9;

/// The shortest and the longest part, in bytes. The last part can be shorter. A part can be up to three bytes longer,
/// so that it ends between two characters.
const LENGTHS: (usize, usize) = (1 << (BITS - 2), 1 << (BITS + 3));

/// The maximum number of names in a list that is not cut.
const LIST: usize = 32;

/// The smallest and the largest number of names in a piece of a list; the last piece can be smaller.
const NAMES: (usize, usize) = (8, 64);

/// The maximum number of levels of lists. A list has at most an eighth, rounded up, of the number of names in the list
/// below it.
const LEVELS: usize = 16;

/// The prefix of the name of a piece of a list. The names of parts of the text do not have it.
const PIECE: &str = "+";

/// The value of the column `space` for parts, where documents have their kind.
pub(super) const SPACE: &str = "part";

/// The columns `body` and `parts` of a document's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) body: String,
    /// The list of the parts of the long text: their names, or the names of the list's pieces.
    pub(super) parts: Option<String>,
}

/// A row of a document or a part: space, scope, id, body and parts. The id of a part is its name.
pub(super) type Row = (String, String, String, String, Option<String>);

/// Rows of documents by their keys, and the parts of their long texts.
#[derive(Default)]
pub(super) struct Found(BTreeMap<(String, String, String), Stored>);

impl Found {
    pub(super) fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        let by_place = |(space, scope, id, body, parts)| ((space, scope, id), Stored { body, parts });
        self.0.extend(rows.into_iter().map(by_place));
    }

    /// Returns the row under a key.
    pub(super) fn stored(&self, key: &Key) -> Option<&Stored> {
        let (scope, id, _) = columns(key);
        self.0.get(&(key.kind().code().to_owned(), scope, id))
    }

    /// Returns the document under a key.
    pub(super) fn document(&self, key: &Key) -> Result<Option<StoredDocument>, StoreError> {
        self.stored(key).map(|stored| self.whole(key.clone(), stored, &columns(key).0)).transpose()
    }

    /// Decodes a document, and reassembles its long text if documents of this kind have one.
    pub(super) fn whole(&self, key: Key, stored: &Stored, scope: &str) -> Result<StoredDocument, StoreError> {
        let needs_text = key.needs_text();
        let document = StoredDocument::from_json(key, &stored.body)?;
        let Some(parts) = &stored.parts else { return Ok(document) };
        if !needs_text {
            return Ok(document.without_text());
        }
        let mut text = String::new();
        self.assemble(scope, parts, LEVELS, &mut text)?;
        Ok(document.with_text(text))
    }

    fn assemble(&self, scope: &str, list: &str, levels: usize, text: &mut String) -> Result<(), StoreError> {
        for name in list.split(' ') {
            let part = self.0.get(&(SPACE.to_owned(), scope.to_owned(), name.to_owned()));
            let part = part.ok_or_else(|| StoreError::Corrupt("a part of a document's text is missing".into()))?;
            match (name.starts_with(PIECE), levels.checked_sub(1)) {
                (false, _) => text.push_str(&part.body),
                (true, Some(levels)) => self.assemble(scope, &part.body, levels, text)?,
                (true, None) => {
                    return Err(StoreError::Corrupt("the parts of a document's text contain each other".into()));
                }
            }
        }
        Ok(())
    }
}

/// The difference between the parts of an old and a new text. Only the pieces of the old list that the new list does
/// not have are read.
pub(super) struct Change {
    /// The parts of the new text, and the pieces of their list, by their names.
    new: BTreeMap<String, String>,
    /// The names in the lists of the old text that were read.
    old: BTreeSet<String>,
    /// The pieces of the old list to read.
    unread: Vec<String>,
}

impl Change {
    /// Compares a new text with the list of the old one. Also returns the list of the new one.
    pub(super) fn new(old: Option<&str>, text: &str) -> (Self, String) {
        let mut new = BTreeMap::new();
        let list = split(text, &mut new);
        let mut change = Self { new, old: BTreeSet::new(), unread: Vec::new() };
        if let Some(old) = old {
            change.read(old);
        }
        (change, list)
    }

    /// Adds a list of the old text, or a piece of it.
    pub(super) fn read(&mut self, list: &str) {
        for name in list.split(' ') {
            if self.old.insert(name.to_owned()) && name.starts_with(PIECE) && !self.new.contains_key(name) {
                self.unread.push(name.to_owned());
            }
        }
    }

    /// Returns the pieces of the old list to read next.
    pub(super) fn unread(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unread)
    }

    /// Returns the parts to write, and the names of the parts to remove (`None`).
    pub(super) fn rows(mut self) -> impl Iterator<Item = (String, Option<String>)> {
        let gone: Vec<_> = self.old.iter().filter(|name| !self.new.contains_key(*name)).cloned().collect();
        let mut stored: Vec<_> = self.old.into_iter().collect();
        while let Some(name) = stored.pop() {
            // If the old list has this piece, the parts in it are already stored.
            if let Some(piece) = self.new.remove(&name).filter(|_| name.starts_with(PIECE)) {
                stored.extend(piece.split(' ').map(str::to_owned));
            }
        }
        let added = self.new.into_iter().map(|(name, part)| (name, Some(part)));
        added.chain(gone.into_iter().map(|name| (name, None)))
    }
}

/// Adds the parts of a string, and the pieces of their list, by their names. Returns the top list.
fn split(text: &str, parts: &mut BTreeMap<String, String>) -> String {
    let mut add = |kind: &str, part: String| {
        let name = format!("{kind}{:.32}", Hash::sha256(&part).to_string());
        parts.insert(name.clone(), part);
        name
    };
    let mut names: Vec<_> = cut(text).into_iter().map(|part| add("", part.to_owned())).collect();
    while names.len() > LIST {
        names = pieces(&names).into_iter().map(|piece| add(PIECE, piece.join(" "))).collect();
    }
    names.join(" ")
}

/// Cuts a list of names into pieces. The hash of a name determines whether a piece ends after it.
fn pieces(names: &[String]) -> Vec<&[String]> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    for (place, name) in names.iter().enumerate() {
        let (end, length) = (place + 1, place + 1 - start);
        if length >= NAMES.1 || (length >= NAMES.0 && name.ends_with('0')) || end == names.len() {
            pieces.push(&names[start..end]);
            start = end;
        }
    }
    pieces
}

/// A pseudo-random number for each byte: the table of the rolling hash that `cut` computes.
const GEAR: [u64; 256] = {
    let (mut gear, mut byte, mut state) = ([0; 256], 0, 0_u64);
    while byte < 256 {
        // One step of the SplitMix64 generator.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        gear[byte] = mixed ^ (mixed >> 31);
        byte += 1;
    }
    gear
};

/// Cuts a string at places that a rolling hash of the preceding 64 bytes selects, so that a change of the text moves
/// only the cuts next to it.
fn cut(text: &str) -> Vec<&str> {
    let mask = u64::MAX << (64 - BITS);
    let (mut parts, mut start, mut hash) = (Vec::new(), 0, 0_u64);
    for (place, byte) in text.bytes().enumerate() {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        let (end, length) = (place + 1, place + 1 - start);
        let is_cut = length >= LENGTHS.1 || (length >= LENGTHS.0 && hash & mask == 0);
        if is_cut && end < text.len() && text.is_char_boundary(end) {
            parts.push(&text[start..end]);
            start = end;
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a string like a conversation's: each step changes something at its front, middle and end.
    fn conversation(turns: usize) -> String {
        let rule = |tool: usize| format!("{{\"tool\":\"name__{tool}\",\"allowed\":{tool}}},");
        let policy: String = (0..60).map(rule).collect();
        let message = |turn: usize| format!("{{\"role\":\"user\",\"text\":\"{}\"}},", Hash::sha256(turn.to_be_bytes()));
        let history: String = (0..turns).map(message).collect();
        format!(
            "{{\"turns\":{turns},\"policies\":[{policy}],\"spent\":{turns},\"history\":[{history}],\"end\":{turns}}}"
        )
    }

    #[test]
    fn parts_make_the_text_again_and_are_short() {
        let repeated = "x".repeat(1 << 20);
        for text in ["a", &"\u{1f980}".repeat(9000), &repeated, &conversation(5), &conversation(20_000)] {
            let mut parts = BTreeMap::new();
            let list = split(text, &mut parts);
            assert!(list.split(' ').count() <= LIST && parts.values().all(|part| part.len() < LENGTHS.1 + 4));
            let mut found = Found::default();
            found.extend(parts.into_iter().map(|(name, part)| (SPACE.to_owned(), String::new(), name, part, None)));
            let mut again = String::new();
            found.assemble("", &list, LEVELS, &mut again).unwrap();
            assert!(again == text);
        }
    }

    #[test]
    fn parts_that_contain_themselves_are_refused() {
        let mut found = Found::default();
        found.extend([(SPACE.to_owned(), String::new(), "+a".to_owned(), "+a".to_owned(), None)]);
        assert_eq!(found.assemble("", "+a", LEVELS, &mut String::new()).unwrap_err().code(), "store_corrupt");
    }

    /// Applies a change to the parts of a store. Returns the list of the new text, and how many bytes the change read
    /// and wrote, including lists.
    fn change(stored: &mut BTreeMap<String, String>, old: Option<&str>, text: &str) -> (String, usize) {
        let (mut change, list) = Change::new(old, text);
        let mut bytes = old.map_or(0, str::len) + list.len();
        loop {
            let unread = change.unread();
            if unread.is_empty() {
                break;
            }
            for name in unread {
                bytes += stored[&name].len();
                change.read(&stored[&name]);
            }
        }
        for (name, part) in change.rows() {
            if let Some(part) = part {
                bytes += part.len();
                stored.insert(name, part);
            } else {
                stored.remove(&name).expect("it removes what is there");
            }
        }
        (list, bytes)
    }

    #[test]
    fn a_step_reads_and_writes_as_much_in_a_long_conversation() {
        for turns in [0, 1, 20, 50, 500, 5000, 20_000] {
            let (before, after) = (conversation(turns), conversation(turns + 1));
            let (mut stored, mut expected) = (BTreeMap::new(), BTreeMap::new());
            let (old, _) = change(&mut stored, None, &before);
            let (new, step) = change(&mut stored, Some(&old), &after);
            assert_eq!(new, split(&after, &mut expected));
            assert_eq!(stored, expected, "the parts of the new text and no others");
            assert!(step < 16 << 10, "{step} bytes after {turns} turns");
            let (again, none) = change(&mut stored, Some(&new), &after);
            assert!(again == new && none <= 2 * 33 * LIST, "an equal text writes no part");
        }
    }
}
