//! Writes JSON strings with the shortest escapes (RFC 8785, section 3.2.2.2).

use std::fmt::Write as _;

use crate::text::lex::{is_plain, plain_until};

/// Writes the text as a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    // Reserves space for the whole string, so that it does not grow in steps.
    out.reserve(text.len() + 2);
    out.push('"');
    if is_plain(text.as_bytes()) {
        out.push_str(text);
    } else {
        escape(out, text);
    }
    out.push('"');
}

/// Writes the text between the quotes. It is a separate function, because few texts need an escape.
#[cold]
fn escape(out: &mut String, text: &str) {
    let (bytes, mut from) = (text.as_bytes(), 0);
    loop {
        // Escaped characters have one byte, so the text is always split between characters.
        let at = plain_until(bytes, from);
        out.push_str(text.get(from..at).unwrap_or_default());
        match bytes.get(at) {
            None => break,
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(0x08) => out.push_str("\\b"),
            Some(0x09) => out.push_str("\\t"),
            Some(0x0a) => out.push_str("\\n"),
            Some(0x0c) => out.push_str("\\f"),
            Some(0x0d) => out.push_str("\\r"),
            Some(byte) => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn everything_reads_back() {
        let all: String = (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '\u{1f600}']).collect();
        for text in ["", "plain", "\"", "a\\b\"c\n", "\u{7f}\u{1}", &all] {
            let mut out = String::new();
            quote(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
