//! Renames the keys that clients refuse in JSON text, whole or in pieces (rule U7 of `wire::ui`).
//!
//! Clients drop a frame, or end the stream, if it contains a key `__proto__`, or `prototype` directly below
//! `constructor`. These keys are renamed to `_proto_` and `_prototype_`. Leaving them out would hide arguments from the
//! person who approves them.

/// Passes JSON text through and renames refused keys, also if they contain escapes or arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Keys {
    levels: Vec<Level>,
    place: Expected,
    /// Whether the last character was a backslash in a string.
    escape: bool,
    /// The beginning of a key that could still become a refused key.
    held: String,
    /// Whether the next value belongs to the key `constructor`.
    constructor: bool,
    /// Whether to leave out white space between tokens.
    compact: bool,
}

#[derive(Debug)]
struct Level {
    object: bool,
    constructor: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    #[default]
    Value,
    BeforeKey,
    Key,
    Text,
    /// After the end of the value.
    Over,
}

/// The length of `"constructor"` if every character is an escape.
const LONGEST: usize = 68;

/// Returns one JSON value on one line.
pub(super) fn whole(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut keys = Keys { compact: true, ..Keys::default() };
    keys.push(text, &mut out);
    out
}

impl Keys {
    /// Reads the next piece, and adds the text that needs no renaming to `out`.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        text.chars().for_each(|next| self.next(next, out));
    }

    /// Whether the object or array has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.place == Expected::Over
    }

    fn next(&mut self, next: char, out: &mut String) {
        match self.place {
            Expected::Text => {
                out.push(next);
                if self.closes(next) {
                    self.place = Expected::Value;
                }
            }
            Expected::Key => {
                self.held.push(next);
                if self.closes(next) {
                    let key = std::mem::take(&mut self.held);
                    self.place = Expected::Value;
                    out.push_str(self.rename(&key).unwrap_or(&key));
                } else if !self.is_suspect() {
                    out.push_str(&std::mem::take(&mut self.held));
                    self.place = Expected::Text;
                }
            }
            Expected::Value | Expected::BeforeKey => self.between(next, out),
            Expected::Over => {}
        }
    }

    fn between(&mut self, next: char, out: &mut String) {
        match next {
            '"' if self.place == Expected::BeforeKey => {
                self.place = Expected::Key;
                self.held.push(next);
                return;
            }
            '"' => self.place = Expected::Text,
            '{' | '[' => {
                let object = next == '{';
                self.levels.push(Level { object, constructor: std::mem::take(&mut self.constructor) });
                self.place = if object { Expected::BeforeKey } else { Expected::Value };
            }
            '}' | ']' => {
                self.levels.pop();
                self.place = if self.levels.is_empty() { Expected::Over } else { Expected::Value };
            }
            ',' => {
                self.constructor = false;
                let object = self.levels.last().is_some_and(|level| level.object);
                self.place = if object { Expected::BeforeKey } else { Expected::Value };
            }
            ' ' | '\n' | '\r' | '\t' if self.compact => return,
            _ => {}
        }
        out.push(next);
    }

    /// Whether this character ends the current string.
    fn closes(&mut self, next: char) -> bool {
        let escaped = std::mem::take(&mut self.escape);
        self.escape = next == '\\' && !escaped;
        next == '"' && !escaped
    }

    fn is_suspect(&self) -> bool {
        let text = self.held.get(1..).unwrap_or_default();
        let begins = |word: &&str| word.starts_with(text);
        // A key with escapes could spell a refused key, so it is held back until it ends or becomes too long.
        self.held.len() <= LONGEST
            && (text.contains('\\') || ["__proto__", "prototype", "constructor"].iter().any(begins))
    }

    fn rename(&mut self, key: &str) -> Option<&'static str> {
        match serde_json::from_str::<String>(key).ok()?.as_str() {
            "__proto__" => Some("\"_proto_\""),
            // Clients refuse `prototype` only directly below `constructor`.
            "prototype" if self.levels.last().is_some_and(|level| level.constructor) => Some("\"_prototype_\""),
            "constructor" => {
                self.constructor = true;
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Keys, whole};

    #[test]
    fn refused_keys_are_renamed_and_nothing_else_is() {
        for (given, expected) in [
            (r#"{"__proto__": 1}"#, r#"{"_proto_":1}"#),
            (r#"{"a":[{"\u005f_proto__":{}}]}"#, r#"{"a":[{"_proto_":{}}]}"#),
            (r#"{"constructor":{"x":1,"prototype":2}}"#, r#"{"constructor":{"x":1,"_prototype_":2}}"#),
            (r#"{"constructor":1,"prototype":{"prototype":2}}"#, r#"{"constructor":1,"prototype":{"prototype":2}}"#),
            (r#"["__proto__", "\"__proto__\":"]"#, r#"["__proto__","\"__proto__\":"]"#),
            (
                r#"{"a":"__proto__","__proto":1e400,"__proto__x":"\\"}"#,
                r#"{"a":"__proto__","__proto":1e400,"__proto__x":"\\"}"#,
            ),
        ] {
            assert_eq!(whole(given), expected);
            let (mut keys, mut out) = (Keys { compact: true, ..Keys::default() }, String::new());
            for character in given.chars() {
                assert!(!keys.is_complete());
                keys.push(character.encode_utf8(&mut [0; 4]), &mut out);
            }
            assert_eq!(out, expected);
            assert!(keys.is_complete());
        }
    }

    #[test]
    fn harmless_pieces_pass_at_once() {
        let (mut keys, mut out) = (Keys::default(), String::new());
        keys.push("{\"time", &mut out);
        assert_eq!(out, "{\"time");
    }
}
