//! Small functions for text, shared by all modules: cutting, line numbers, similar names, quoting, invisible
//! characters, JSON Pointers, JSON strings, random ids.

mod invisible;
pub(crate) mod lex;
pub(crate) mod pointer;
mod quoted;
mod random;

pub(crate) use invisible::{InvisibleKind, invisible_kind, is_invisible, is_name, strip_invisible};
pub(crate) use quoted::{plain, quoted};
pub(crate) use random::random_id;

/// Longer names are not compared, because people do not type them and the comparison is quadratic.
const LONGEST_NAME: usize = 128;

/// Returns the longest start of `text` that has at most `bytes` bytes and ends between characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Returns a text from another program for models, UIs and records: cut to `max` bytes, and without control characters
/// except line breaks.
pub(crate) fn sentence(text: &str, max: usize) -> String {
    let kept = cut(text, max);
    let mut sentence: String =
        kept.chars().map(|one| if one.is_control() && one != '\n' { ' ' } else { one }).collect();
    if kept.len() < text.len() {
        sentence.push_str("..");
    }
    sentence
}

/// Returns line and column of a byte offset, both from 1; columns count characters.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = cut(text, offset);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

/// Returns the name that `wrong` probably stands for. Among equally near names, the first in alphabetical order.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = Name::of(wrong)?;
    names.into_iter().filter_map(|name| Some((wrong.distance(&Name::of(name)?)?, name))).min().map(|(_, name)| name)
}

/// Whether one name is probably a misspelling of the other.
pub(crate) fn is_similar(one: &str, two: &str) -> bool {
    Name::of(one).zip(Name::of(two)).is_some_and(|(one, two)| one.distance(&two).is_some())
}

/// A name as it is written, and as `plain`: without case and separators, which are easily mistaken.
struct Name {
    plain: String,
    written: String,
}

impl Name {
    fn of(name: &str) -> Option<Self> {
        let separator = |character: &char| matches!(character, '_' | '-' | ' ' | '.');
        let plain: String = name.chars().filter(|one| !separator(one)).flat_map(char::to_lowercase).collect();
        (name.len() <= LONGEST_NAME && !plain.is_empty()).then(|| Self { plain, written: name.to_owned() })
    }

    /// Returns the edit distance, if at most a third of the longer name differs or one name begins or ends with the
    /// other.
    fn distance(&self, other: &Self) -> Option<(usize, usize)> {
        let (short, long) = if self.plain.len() < other.plain.len() { (self, other) } else { (other, self) };
        let edits = strsim::osa_distance(&self.plain, &other.plain);
        let contained = short.plain.len() >= 3
            && (long.plain.starts_with(short.plain.as_str()) || long.plain.ends_with(short.plain.as_str()));
        let similar = contained || edits <= (long.plain.chars().count() / 3).max(1);
        // Separators and case only decide between names that are otherwise equally near.
        similar.then(|| (edits, strsim::osa_distance(&self.written, &other.written)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        for (one, two, expected) in [
            ("city", "ctiy", true),
            ("city", "City", true),
            ("due_date", "dueDate", true),
            ("due_date", "due", true),
            ("timezone", "time_zone", true),
            ("timezone", "zone", true),
            ("location", "locaton", true),
            ("a", "b", true),
            ("id", "unit", false),
            ("city", "unit", false),
            ("state", "priority", false),
            ("title", "", false),
            ("ti", "titles", false),
        ] {
            assert_eq!(is_similar(one, two), expected, "{one} {two}");
            assert_eq!(is_similar(two, one), expected, "{two} {one}");
        }
        assert!(!is_similar(&"a".repeat(100_000), &"a".repeat(100_000)));
    }

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("allowd_tools", ["denied_tools", "allowed_tools"]), Some("allowed_tools"));
        assert_eq!(nearest("moeny", ["mail", "money"]), Some("money"));
        assert_eq!(nearest("due-date", ["duedate", "due_date"]), Some("due_date"));
        assert_eq!(nearest("zebra", ["mail", "money"]), None);
    }

    #[test]
    fn cuts_and_places_are_between_characters() {
        assert_eq!((cut("aåb", 2), cut("aåb", 3), cut("aåb", 9)), ("a", "aå", "aåb"));
        assert_eq!(line_column("a\nåb", 4), (2, 2));
        assert_eq!(line_column("a\nåb", 3), (2, 1));
        assert_eq!(line_column("", 7), (1, 1));
    }
}
