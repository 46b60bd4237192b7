//! Writing JSON strings: the shortest escapes, as RFC 8785 (3.2.2.2) has them.

use std::fmt::Write as _;

/// Which bytes a JSON string cannot hold unescaped.
const ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Writes the text as a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| ESCAPED[usize::from(byte)]) {
        // What is escaped is one byte long, so both cuts are between characters.
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        match from.as_bytes().first() {
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(0x08) => out.push_str("\\b"),
            Some(0x09) => out.push_str("\\t"),
            Some(0x0a) => out.push_str("\\n"),
            Some(0x0c) => out.push_str("\\f"),
            Some(0x0d) => out.push_str("\\r"),
            Some(byte) => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            None => {}
        }
        rest = from.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
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
