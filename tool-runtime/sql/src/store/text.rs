//! Encodes keys without U+0000, which PostgreSQL rejects, and within the maximum length of an index entry.

use std::sync::Arc;

use jiff::Timestamp;
use tool_runtime::store::{DocumentKind, Key, StoreError};
use tool_runtime::tool::Hash;

/// The maximum length of an encoded key, in bytes. An index entry of PostgreSQL has at most 2,704 bytes in all.
const MAX_BYTES: usize = 512;

/// The length of the readable beginning of a longer key, in bytes.
const SHOWN_BYTES: usize = 256;

/// Encodes U+0000 as `\0` and a backslash as two, so that different texts stay different.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\0', "\\0")
}

/// Encodes a string of a key. A long text becomes its beginning, `\#` and its hash. Escaping never produces `\#`.
pub(super) fn clipped(text: &str) -> String {
    clip(text).0
}

/// Encodes a string of a key, and returns whether the result contains the whole text.
fn clip(text: &str) -> (String, bool) {
    let whole = escaped(text);
    if whole.len() <= MAX_BYTES {
        return (whole, true);
    }
    (format!("{}\\#{}", escaped(&text[..text.floor_char_boundary(SHOWN_BYTES)]), Hash::sha256(text)), false)
}

/// Returns the columns that name a document: `scope`, `id`, and `name` if the first two do not contain the whole key.
pub(super) fn columns(key: &Key) -> (String, String, Option<String>) {
    let ((scope, is_whole), (id, is_whole_too)) = (clip(key.scope()), clip(key.id()));
    let name = (!is_whole || !is_whole_too).then(|| serde_json::json!([**key.scope(), **key.id()]).to_string());
    (scope, id, name)
}

/// Reads the key of a document.
pub(super) fn key(space: DocumentKind, scope: &str, id: &str, name: Option<&str>) -> Result<Key, StoreError> {
    let (scope, id) = match name {
        Some(name) => {
            serde_json::from_str::<(Arc<str>, Arc<str>)>(name).map_err(|error| StoreError::Corrupt(Box::new(error)))?
        }
        None => (whole(scope), whole(id)),
    };
    Ok(Key::from_parts(space, scope, id))
}

/// Decodes the output of [`escaped`].
fn whole(column: &str) -> Arc<str> {
    let mut text = String::with_capacity(column.len());
    let mut characters = column.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' if characters.next() == Some('0') => '\0',
            other => other,
        });
    }
    text.into()
}

/// Returns the microsecond that contains a moment.
pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// Returns the first microsecond that is not before a moment.
pub(super) fn micros_from(time: Timestamp) -> i64 {
    let micros = time.as_microsecond();
    let is_before = Timestamp::from_microsecond(micros).is_ok_and(|whole| whole < time);
    micros + i64::from(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_key_reads_as_it_was_written() {
        let long = "\\\u{1f980}".repeat(4096);
        for (scope, id) in [("run", "call"), ("a\\0b", "a\0b"), ("\\", "\\#"), ("", &long), (&long, "\0")] {
            let key = Key::from_parts(DocumentKind::Waiting, scope, id);
            let (scope, id, name) = columns(&key);
            assert!(scope.len() + id.len() < 2048 && !scope.contains('\0') && !id.contains('\0'));
            assert_eq!(super::key(DocumentKind::Waiting, &scope, &id, name.as_deref()).unwrap(), key);
        }
    }

    #[test]
    fn no_two_texts_are_written_alike() {
        let texts = ["\0", "\\0", "\\\\0", "\\", "\\\\", "\\#", ""];
        let written: std::collections::BTreeSet<_> = texts.iter().map(|text| clipped(text)).collect();
        assert_eq!(written.len(), texts.len());
        let (one, two) = ("x".repeat(600) + "1", "x".repeat(600) + "2");
        assert_ne!(clipped(&one), clipped(&two));
    }

    #[test]
    fn nothing_is_due_early() {
        let time: Timestamp = "2026-01-01T00:00:00.000001001Z".parse().unwrap();
        assert_eq!(micros_from(time), micros(time) + 1);
        assert_eq!(micros_from(Timestamp::MAX), micros(Timestamp::MAX), "the last moment is due in the end");
        assert_eq!(micros_from(Timestamp::UNIX_EPOCH), 0);
    }
}
