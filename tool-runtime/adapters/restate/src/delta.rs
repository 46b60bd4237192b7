//! [`Delta`]: a document as the difference to the one before it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A document as pieces of the one before it and new text. The document of a conversation contains its history, so a
/// journal of whole documents grows with the square of the steps.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Delta(Vec<Piece>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Piece {
    /// Bytes of the document before, from the first to before the second.
    Same(usize, usize),
    New(String),
}

impl Delta {
    /// Returns what leads from one text to another.
    pub(crate) fn between(before: &str, after: &str) -> Self {
        let mut places = HashMap::new();
        let mut at = 0;
        for chunk in chunks(before) {
            places.entry(chunk).or_insert(at);
            at += chunk.len();
        }
        let mut pieces: Vec<Piece> = Vec::new();
        for chunk in chunks(after) {
            match pieces.last_mut() {
                // What follows in one text follows in the other, wherever else it occurs.
                Some(Piece::Same(_, to)) if before[*to..].starts_with(chunk) => *to += chunk.len(),
                last => match (last, places.get(chunk)) {
                    (_, Some(&from)) => pieces.push(Piece::Same(from, from + chunk.len())),
                    (Some(Piece::New(text)), None) => text.push_str(chunk),
                    (_, None) => pieces.push(Piece::New(chunk.to_owned())),
                },
            }
        }
        Self(pieces)
    }

    /// Returns the text that it leads to, at most this many bytes. `None` if it is larger or belongs to another document.
    pub(crate) fn after(&self, before: &str, most: usize) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            let piece = match piece {
                Piece::Same(from, to) => before.get(*from..*to)?,
                Piece::New(piece) => piece,
            };
            if text.len() + piece.len() > most {
                return None;
            }
            text.push_str(piece);
        }
        Some(text)
    }
}

/// Where JSON can differ. A comma in a text ends a chunk too, which does no harm.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([',', '{', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_leads_to_the_same_text() {
        let texts = [
            "",
            r#"{"code":"asked","history":[{"user":"Grüße, [alle]!"}],"spent":{"calls":1},"turns":[1]}"#,
            r#"{"code":"ran","history":[{"user":"Grüße, [alle]!"},{"assistant":"a, b"}],"spent":{"calls":2},"turns":[1,2]}"#,
            "no JSON",
            "ß,ß,ß,",
        ];
        for before in texts {
            for after in texts {
                let delta = Delta::between(before, after);
                assert_eq!(delta.after(before, after.len()).as_deref(), Some(after), "{before} -> {after}");
                let text = serde_json::to_string(&delta).unwrap();
                assert_eq!(serde_json::from_str::<Delta>(&text).unwrap(), delta);
                if !after.is_empty() {
                    assert_eq!(delta.after(before, after.len() - 1), None, "larger than allowed");
                }
            }
        }
    }

    #[test]
    fn what_is_added_is_what_is_kept() {
        let items: Vec<_> = (0..1_000).map(|item| format!(r#"{{"item":"text {item}"}}"#)).collect();
        let (before, after) = (items[..999].join(","), items.join(","));
        let delta = serde_json::to_string(&Delta::between(&before, &after)).unwrap();
        assert!(delta.len() < 100, "{delta}");
    }

    #[test]
    fn a_delta_of_another_document_is_refused() {
        let delta = Delta::between("a,b,c,", "a,b,d,");
        assert_eq!(delta.after("", 100), None);
        // In the middle of a character.
        let delta: Delta = serde_json::from_str("[[0,1]]").unwrap();
        assert_eq!(delta.after("ß", 100), None);
        let delta: Delta = serde_json::from_str("[[3,1]]").unwrap();
        assert_eq!(delta.after("text", 100), None);
    }
}
