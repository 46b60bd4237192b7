//! The long text of a document, cut into parts by its content. A write adds only new parts: unchanged text, such as the
//! policies and earlier messages, is not written again. A renewed lease writes no part.

use std::collections::{BTreeMap, BTreeSet};

use tool_runtime::store::{Key, StoreError, StoredDocument};
use tool_runtime::tool::Hash;

use crate::store::text::columns;

/// The target number of parts of a long text.
const PARTS: usize = 64;

/// The smallest average length of a part, in bytes.
const SHORTEST: usize = 512;

/// The name of the parts' space, next to the kinds of documents.
pub(super) const SPACE: &str = "part";

/// A document in the form of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) body: String,
    /// The hashes of the parts of the long text, in order.
    pub(super) parts: Option<String>,
}

/// A row: space, scope, id, body and parts. The id of a part is its hash.
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

    /// Reads a document and reassembles its long text.
    pub(super) fn whole(&self, key: Key, stored: &Stored, scope: &str) -> Result<StoredDocument, StoreError> {
        let document = StoredDocument::from_json(key, &stored.body)?;
        let Some(parts) = &stored.parts else { return Ok(document) };
        let mut text = String::new();
        for hash in parts.split(' ') {
            let part = self.0.get(&(SPACE.to_owned(), scope.to_owned(), hash.to_owned()));
            let part = part.ok_or_else(|| StoreError::Corrupt("a part of a document's text is missing".into()))?;
            text.push_str(&part.body);
        }
        Ok(document.with_text(text))
    }
}

/// Returns the parts of a string by their hashes, and the list of the hashes in order.
pub(super) fn split(text: &str) -> (BTreeMap<String, &str>, String) {
    let hash = |part: &str| Hash::sha256(part).to_string().split_at(32).0.to_owned();
    let parts: Vec<_> = cut(text).into_iter().map(|part| (hash(part), part)).collect();
    let hashes: Vec<_> = parts.iter().map(|(hash, _)| hash.as_str()).collect();
    let hashes = hashes.join(" ");
    (parts.into_iter().collect(), hashes)
}

/// Returns the parts of a new text that the old row does not have, and those of the row that the text does not have.
pub(super) fn changed<'a>(
    old: Option<&'a Stored>,
    new: &'a BTreeMap<String, &'a str>,
) -> (Vec<(&'a str, &'a str)>, Vec<&'a str>) {
    let old: BTreeSet<&str> =
        old.and_then(|old| old.parts.as_deref()).into_iter().flat_map(|old| old.split(' ')).collect();
    let added = new.iter().filter(|(hash, _)| !old.contains(hash.as_str()));
    let added = added.map(|(hash, part)| (hash.as_str(), *part)).collect();
    (added, old.into_iter().filter(|hash| !new.contains_key(*hash)).collect())
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

/// Cuts a string at the places where a rolling hash of the 64 bytes before them ends a part, so that a change moves
/// only the cuts next to it. For longer texts the average part is longer, so that the list of parts stays short: each
/// doubling drops every second cut on average and keeps the others.
fn cut(text: &str) -> Vec<&str> {
    let bits = (text.len() / PARTS).max(SHORTEST).ilog2();
    let (mask, least) = (u64::MAX << (64 - bits), 1_usize << (bits - 2));
    let (mut parts, mut start, mut hash) = (Vec::new(), 0, 0_u64);
    for (place, byte) in text.bytes().enumerate() {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        let end = place + 1;
        if hash & mask == 0 && end - start >= least && end < text.len() && text.is_char_boundary(end) {
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
    fn parts_make_the_text_again_and_are_few() {
        for text in ["a", &"\u{1f980}".repeat(9000), &"x".repeat(1 << 20), &conversation(5), &conversation(20_000)] {
            let parts = cut(text);
            assert!(parts.len() <= 4 * 2 * PARTS && parts.concat() == text, "{}", parts.len());
        }
    }

    #[test]
    fn a_step_changes_the_parts_beside_its_changes() {
        for (turns, share) in [(50, 2), (500, 8), (5000, 16)] {
            let (before, after) = (conversation(turns), conversation(turns + 1));
            let old: BTreeSet<_> = cut(&before).into_iter().collect();
            let new: usize = cut(&after).into_iter().filter(|part| !old.contains(part)).map(str::len).sum();
            assert!(new * share < after.len(), "{new} of {} bytes are new after {turns} turns", after.len());
        }
    }
}
