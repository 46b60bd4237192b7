//! [`Delta`]: the difference between a document and the previous one.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A document as a list of pieces: ranges of the previous document, and new text. A conversation's document contains
/// its history, so a journal of whole documents would grow with the square of the number of steps.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Delta(Vec<Piece>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Piece {
    /// A range of bytes of the previous document: start and exclusive end.
    Same(usize, usize),
    New(String),
}

impl Delta {
    /// Returns the difference from one text to another.
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
                // Extends the current piece if possible, so that there are fewer pieces.
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

    /// Applies the difference to `before`. Returns `None` if the result is longer than `most` bytes, or if a
    /// range is outside `before` or splits a character. Another document of sufficient length is not detected.
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

/// Splits JSON after each `,`, `{` and `[`. A comma within a string ends a chunk, too, which does no harm.
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
        // Cuts `ß` in the middle of the character.
        let delta: Delta = serde_json::from_str("[[0,1]]").unwrap();
        assert_eq!(delta.after("ß", 100), None);
        let delta: Delta = serde_json::from_str("[[3,1]]").unwrap();
        assert_eq!(delta.after("text", 100), None);
    }
}
