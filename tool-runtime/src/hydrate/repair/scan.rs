//! Scans text that is almost JSON. It only distinguishes strings from other text.

use crate::text::lex::{closing_quote, outside_strings};

/// The object at the beginning of the text, up to its closing bracket; `None` if there is none.
pub(super) fn first_object(text: &str) -> Option<&str> {
    if !text.starts_with('{') {
        return None;
    }
    let mut depth = 0_usize;
    for (at, byte) in outside_strings(text) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return text.get(..=at);
        }
    }
    None
}

/// The text without commas before closing brackets.
pub(super) fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    let mut comma = None;
    for (at, byte) in outside_strings(text) {
        match (byte, comma) {
            (b',', _) => comma = Some(at),
            (b' ' | b'\n' | b'\r' | b'\t', _) => {}
            (b'}' | b']', Some(place)) => {
                out.push_str(text.get(from..place).unwrap_or_default());
                from = place + 1;
                comma = None;
            }
            _ => comma = None,
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// The text with double quotes in place of single quotes around strings. `None` if it has no such string, if one
/// contains a quote or a backslash, or if the character after a string is not valid JSON: the end of the string is then
/// uncertain.
pub(super) fn double_quoted(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut at, mut found) = (0, false);
    while let Some(character) = text.get(at..)?.chars().next() {
        let end = match character {
            '"' => closing_quote(text.as_bytes(), at + 1) + 1,
            '\'' => {
                let end = at + 1 + text.get(at + 1..)?.find('\'')?;
                let inner = text.get(at + 1..end)?;
                let next = text.get(end + 1..)?.trim_start().chars().next()?;
                if inner.contains(['"', '\\']) || !matches!(next, ':' | ',' | '}' | ']') {
                    return None;
                }
                out.extend(["\"", inner, "\""]);
                found = true;
                at = end + 1;
                continue;
            }
            other => at + other.len_utf8(),
        };
        out.push_str(text.get(at..end)?);
        at = end;
    }
    found.then_some(out)
}
