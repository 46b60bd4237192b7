//! The sentences of a tool for the person who decides on a call: text with the names of arguments in braces.

use std::fmt;

/// The longest sentence, in characters.
pub(crate) const MAX_SENTENCE_CHARS: usize = 200;

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// The path of an argument: its name, or the names that lead to a member of it.
    Argument(Vec<String>),
    /// `[`: the pieces up to the next `]` are left out unless all their arguments are present.
    Begin,
    /// `]`
    End,
}

/// The reason why a string is not a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentenceError {
    Empty,
    TooLong,
    Hidden,
    Open,
    Close,
    Unnamed,
    Unended,
    Unbegun,
    Nested,
    Always,
}

impl fmt::Display for SentenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong => write!(f, "is longer than {MAX_SENTENCE_CHARS} characters"),
            Self::Hidden => f.write_str("contains a line break or an invisible character"),
            Self::Open => f.write_str("has a `{` that is never closed; write `{{` for the character"),
            Self::Close => f.write_str("has a `}` that closes nothing; write `}}` for the character"),
            Self::Unnamed => f.write_str("has braces without a name; write the name of an argument between them"),
            Self::Unended => f.write_str("has a `[` that is never closed; write `[[` for the character"),
            Self::Unbegun => f.write_str("has a `]` that closes nothing; write `]]` for the character"),
            Self::Nested => f.write_str("has an optional part inside another; close the first with `]` before it"),
            Self::Always => {
                f.write_str("has an optional part without an argument; name one in it, or remove the brackets")
            }
        }
    }
}

/// Checks that optional parts are closed, name an argument, and are not inside one another.
fn check(pieces: &[Piece]) -> Result<(), SentenceError> {
    let mut open: Option<bool> = None;
    for piece in pieces {
        open = match (piece, open) {
            (Piece::Begin, None) => Some(false),
            (Piece::Begin, Some(_)) => return Err(SentenceError::Nested),
            (Piece::End, None) => return Err(SentenceError::Unbegun),
            (Piece::End, Some(false)) => return Err(SentenceError::Always),
            (Piece::End, Some(true)) => None,
            (Piece::Argument(_), Some(_)) => Some(true),
            (Piece::Argument(_) | Piece::Text(_), open) => open,
        };
    }
    if open.is_some() { Err(SentenceError::Unended) } else { Ok(()) }
}

impl Piece {
    /// Returns the pieces outside of optional parts.
    pub(crate) fn always(pieces: &[Self]) -> impl Iterator<Item = &Self> {
        let mut is_optional = false;
        pieces.iter().filter(move |piece| {
            is_optional = matches!(piece, Self::Begin) || is_optional && !matches!(piece, Self::End);
            !is_optional
        })
    }
}

/// Reads a sentence. `{{`, `}}`, `[[` and `]]` each stand for one character. Quotes directly around a name are dropped,
/// because a string is shown in quotes anyway.
pub(crate) fn pieces(sentence: &str) -> Result<Vec<Piece>, SentenceError> {
    if sentence.trim().is_empty() {
        return Err(SentenceError::Empty);
    }
    if sentence.chars().count() > MAX_SENTENCE_CHARS {
        return Err(SentenceError::TooLong);
    }
    if sentence.chars().any(crate::text::is_invisible) {
        return Err(SentenceError::Hidden);
    }
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), sentence);
    while let Some(at) = rest.find(['{', '}', '[', ']']) {
        let (before, braces) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = ["{{", "}}", "[[", "]]"].iter().find_map(|doubled| braces.strip_prefix(doubled)) {
            text.push_str(braces.get(..1).unwrap_or_default());
            rest = after;
            continue;
        }
        let bracket = [("[", Piece::Begin), ("]", Piece::End)].into_iter();
        let mut bracket = bracket.filter_map(|(bracket, piece)| Some((braces.strip_prefix(bracket)?, piece)));
        if let Some((after, piece)) = bracket.next() {
            pieces.extend([Piece::Text(std::mem::take(&mut text)), piece]);
            rest = after;
            continue;
        }
        let inside = braces.strip_prefix('{').ok_or(SentenceError::Close)?;
        let (name, mut after) = inside.split_once('}').ok_or(SentenceError::Open)?;
        if name.contains('{') {
            return Err(SentenceError::Open);
        }
        if name.split('.').any(|segment| segment.trim().is_empty()) {
            return Err(SentenceError::Unnamed);
        }
        for (open, close) in [('"', '"'), ('\'', '\''), ('“', '”')] {
            if let (true, Some(left)) = (text.ends_with(open), after.strip_prefix(close)) {
                text.pop();
                after = left;
                break;
            }
        }
        pieces.extend([Piece::Text(std::mem::take(&mut text)), argument(name)]);
        rest = after;
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    check(&pieces)?;
    Ok(pieces)
}

fn argument(name: &str) -> Piece {
    Piece::Argument(name.split('.').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_read_and_broken_ones_are_not() {
        let text = |text: &str| Piece::Text(text.to_owned());
        for (sentence, expected) in [
            ("Deletes everything.", Ok(vec![text("Deletes everything.")])),
            (
                r#"Deletes "{title}" of '{owner.name}' {{now}}"#,
                Ok(vec![text("Deletes "), argument("title"), text(" of "), argument("owner.name"), text(" {now}")]),
            ),
            (r#"{a}{b}" "{c}"#, Ok(vec![argument("a"), argument("b"), text("\" \""), argument("c")])),
            (
                "Moves {id}[ to {due}] [[now]]",
                Ok(vec![
                    text("Moves "),
                    argument("id"),
                    Piece::Begin,
                    text(" to "),
                    argument("due"),
                    Piece::End,
                    text(" [now]"),
                ]),
            ),
            ("a [b {c}", Err(SentenceError::Unended)),
            ("a {c}]", Err(SentenceError::Unbegun)),
            ("a [b {c} [d {e}]]", Err(SentenceError::Nested)),
            ("a [b]", Err(SentenceError::Always)),
            (" ", Err(SentenceError::Empty)),
            ("a\nb", Err(SentenceError::Hidden)),
            ("a\u{202e}b", Err(SentenceError::Hidden)),
            ("a {b", Err(SentenceError::Open)),
            ("a {b {c}", Err(SentenceError::Open)),
            ("a b}", Err(SentenceError::Close)),
            ("a {}", Err(SentenceError::Unnamed)),
            ("a {b..c}", Err(SentenceError::Unnamed)),
        ] {
            assert_eq!(pieces(sentence), expected, "{sentence}");
        }
        assert!(pieces(&"å".repeat(MAX_SENTENCE_CHARS)).is_ok());
        assert_eq!(pieces(&"å".repeat(MAX_SENTENCE_CHARS + 1)), Err(SentenceError::TooLong));
    }
}
