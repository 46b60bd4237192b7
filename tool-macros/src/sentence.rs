//! The sentences of `summary`: text with the names of arguments in braces.

use std::ops::Range;

use proc_macro2::Span;
use syn::LitStr;

/// A part of a sentence. The ranges are byte positions in the sentence.
pub(crate) enum Part {
    /// Text, with `{{` already replaced by `{`.
    Text(String),
    /// The name of an argument, or `argument.member`.
    Name(String, Range<usize>),
    /// `[`, where an optional part begins, and `]`, where it ends.
    Bracket(char),
    /// Braces or brackets that cannot be read, and why.
    Broken(&'static str, Range<usize>),
}

const OPEN: &str = "this `{` is never closed; write `{{` for the character";
const CLOSE: &str = "this `}` closes nothing; write `}}` for the character";
const BEGIN: &str = "this `[` is never closed; write `[[` for the character";
const NESTED: &str = "an optional part is inside another; close the first with `]` before it";
const END: &str = "this `]` closes nothing; write `]]` for the character";
const ALWAYS: &str = "this optional part names no argument; name one in it, or remove the brackets";
const UNNAMED: &str = "these braces hold no name; write the name of an argument between them";

/// Reads all parts of a sentence. `{{`, `}}`, `[[` and `]]` each stand for one character.
pub(crate) fn parts(sentence: &str) -> Vec<Part> {
    let (mut parts, mut text, mut at) = (Vec::new(), String::new(), 0);
    // The position at which an optional part began, and whether it names an argument.
    let mut open: Option<(usize, bool)> = None;
    while let Some(rest) = sentence.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = rest.find(['{', '}', '[', ']']).unwrap_or(rest.len());
        text.push_str(rest.get(..plain).unwrap_or_default());
        at += plain;
        let Some(braces) = rest.get(plain..).filter(|braces| !braces.is_empty()) else { break };
        if ["{{", "}}", "[[", "]]"].iter().any(|doubled| braces.starts_with(doubled)) {
            text.push_str(braces.get(..1).unwrap_or_default());
            at += 2;
            continue;
        }
        if let Some(bracket) = braces.chars().next().filter(|bracket| matches!(bracket, '[' | ']')) {
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            let here = at..at + 1;
            parts.push(match (bracket, open) {
                ('[', Some(_)) => Part::Broken(NESTED, here),
                ('[', None) => {
                    open = Some((at, false));
                    Part::Bracket('[')
                }
                (_, None) => Part::Broken(END, here),
                (_, Some((from, is_named))) => {
                    open = None;
                    if is_named { Part::Bracket(']') } else { Part::Broken(ALWAYS, from..at + 1) }
                }
            });
            at += 1;
            continue;
        }
        let inside = braces.strip_prefix('{');
        // A name ends at the next brace of either kind, so that an unclosed `{` is reported alone.
        let name = inside.and_then(|inside| inside.get(..inside.find(['{', '}'])?));
        let closed = name.filter(|name| braces.get(name.len() + 1..).is_some_and(|rest| rest.starts_with('}')));
        let length = closed.map_or(1, |name| name.len() + 2);
        let place = at..at + length;
        let part = match (inside, closed) {
            (None, _) => Part::Broken(CLOSE, place),
            (Some(_), None) => Part::Broken(OPEN, place),
            (Some(_), Some(name)) if name.split('.').any(|segment| segment.trim().is_empty()) => {
                Part::Broken(UNNAMED, place)
            }
            (Some(_), Some(name)) => Part::Name(name.to_owned(), place),
        };
        open = open.map(|(from, is_named)| (from, is_named || matches!(part, Part::Name(..))));
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
        at += length;
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    if let Some((from, _)) = open {
        parts.push(Part::Broken(BEGIN, from..from + 1));
    }
    parts
}

/// Returns the names outside of optional parts. The sentence is only used if these arguments are present.
pub(crate) fn needed(sentence: &str) -> impl Iterator<Item = String> {
    let mut is_optional = false;
    parts(sentence).into_iter().filter_map(move |part| match part {
        Part::Bracket(bracket) => {
            is_optional = bracket == '[';
            None
        }
        Part::Name(name, _) => (!is_optional).then_some(name),
        Part::Text(_) | Part::Broken(..) => None,
    })
}

/// Returns the names in a sentence, each with its place.
pub(crate) fn names(sentence: &str) -> impl Iterator<Item = (String, Range<usize>)> {
    parts(sentence).into_iter().filter_map(|part| match part {
        Part::Name(name, place) => Some((name, place)),
        Part::Text(_) | Part::Bracket(_) | Part::Broken(..) => None,
    })
}

/// Splits `argument.member` at the first dot.
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.split_at(name.find('.').unwrap_or(name.len()))
}

/// Writes the sentence with other names for its arguments.
pub(crate) fn renamed<'n>(sentence: &str, mut rename: impl FnMut(&str) -> Option<&'n str>) -> String {
    let mut written = String::new();
    for part in parts(sentence) {
        match part {
            // A part holds `{`; the sentence needs `{{`.
            Part::Text(text) => {
                for letter in text.chars() {
                    written.extend(std::iter::repeat_n(letter, if "{}[]".contains(letter) { 2 } else { 1 }));
                }
            }
            Part::Bracket(bracket) => written.push(bracket),
            Part::Name(name, _) => {
                let (argument, below) = split(&name);
                written.extend(["{", rename(argument).unwrap_or(argument), below, "}"]);
            }
            Part::Broken(..) => {}
        }
    }
    written
}

/// Returns the span of a place in a literal if the compiler provides one and the literal has no escapes; otherwise the
/// span of the literal.
pub(crate) fn span(literal: &LitStr, place: &Range<usize>) -> Span {
    let token = literal.token();
    let plain = token.to_string() == format!("\"{}\"", literal.value());
    // The text begins after the quote.
    let inside = plain.then(|| token.subspan(place.start + 1..=place.end)).flatten();
    inside.unwrap_or_else(|| literal.span())
}

#[cfg(test)]
mod tests {
    use super::{Part, parts, renamed};

    fn read(sentence: &str) -> Vec<String> {
        let show = |part| match part {
            Part::Text(text) => text,
            Part::Name(name, place) => {
                assert_eq!(sentence[place], format!("{{{name}}}"));
                format!("<{name}>")
            }
            Part::Bracket(bracket) => bracket.to_string(),
            Part::Broken(why, place) => format!("{}: {}", &sentence[place], &why[..10]),
        };
        parts(sentence).into_iter().map(show).collect()
    }

    #[test]
    fn every_brace_is_read_or_reported() {
        for (sentence, expected) in [
            ("Deletes {title} of {owner.name}.", &["Deletes ", "<title>", " of ", "<owner.name>", "."][..]),
            ("{{a}} {b}", &["{a} ", "<b>"]),
            ("a } {b", &["a ", "}: this `}` c", " ", "{: this `{` i", "b"]),
            ("{a {b} {} {c..d}", &["{: this `{` i", "a ", "<b>", " ", "{}: these brac", " ", "{c..d}: these brac"]),
            ("å{a}", &["å", "<a>"]),
            ("{a}[ to {b}] [[c]]", &["<a>", "[", " to ", "<b>", "]", " [c]"]),
            (
                "[a] [{b} [{c}",
                &["[", "a", "[a]: this optio", " ", "[", "<b>", " ", "[: an optiona", "<c>", "[: this `[` i"],
            ),
            ("{a}]", &["<a>", "]: this `]` c"]),
            ("", &[]),
        ] {
            assert_eq!(read(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn arguments_get_their_names_on_the_wire() {
        let wire = |name: &str| (name == "due_date").then_some("dueDate");
        let sentence = "{{x}} {due_date.day}[ of {owner}] [[y]]";
        assert_eq!(renamed(sentence, wire), "{{x}} {dueDate.day}[ of {owner}] [[y]]");
        assert_eq!(super::needed(sentence).collect::<Vec<_>>(), ["due_date.day"]);
    }
}
