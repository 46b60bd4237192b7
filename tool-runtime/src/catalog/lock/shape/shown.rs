//! Formats two values for the message of a change.

use serde_json::Value;

use crate::json::canonical;
use crate::text::plain;

/// The maximum number of characters of a value in a message.
const SHOWN: usize = 80;

/// Returns both values in one line, each cut to 80 characters.
pub(in crate::catalog::lock) fn between(old: Option<&Value>, new: Option<&Value>) -> String {
    let shown =
        |value: Option<&Value>| value.map_or("none".to_owned(), |value| plain(&canonical::to_text(value), SHOWN));
    match (old, new) {
        (Some(Value::String(old)), Some(Value::String(new))) => texts(old, new),
        _ => format!("{} -> {}", shown(old), shown(new)),
    }
}

/// Returns both texts in one line, each from shortly before the first difference.
pub(in crate::catalog::lock) fn texts(old: &str, new: &str) -> String {
    let same = old.char_indices().zip(new.chars()).take_while(|((_, one), other)| one == other);
    let (chars, bytes) = same.fold((0, 0), |(chars, _), ((at, one), _)| (chars + 1, at + one.len_utf8()));
    let start = old.get(..bytes).unwrap_or_default().char_indices().rev().nth(19).map_or(0, |(at, _)| at);
    let mark = if chars > 20 { "…" } else { "" };
    let shown = |text: &str| format!("\"{mark}{}\"", plain(text.get(start..).unwrap_or_default(), SHOWN));
    format!("{} -> {}", shown(old), shown(new))
}
