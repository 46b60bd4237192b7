//! JSON strings, borrowed from the text unless they contain escapes.

use std::borrow::Cow;

use crate::json::ParseErrorKind;
use crate::text::lex::plain_until;

type Fault = (ParseErrorKind, usize);

/// Returns the string from `start` to the first quote; `None` if it contains an escape or is invalid.
#[inline]
pub(super) fn plain(text: &str, start: usize) -> Option<&str> {
    let end = plain_until(text.as_bytes(), start);
    text.get(start..end).filter(|_| text.as_bytes().get(end) == Some(&b'"'))
}

/// Parses a string that is not [`plain`]. Returns it and the offset after its closing quote.
#[cold]
pub(super) fn resolve(text: &str, start: usize) -> Result<(Cow<'_, str>, usize), Fault> {
    let bytes = text.as_bytes();
    let (mut out, mut from, mut at) = (String::new(), start, plain_until(bytes, start));
    loop {
        out.push_str(text.get(from..at).unwrap_or_default());
        match bytes.get(at) {
            Some(b'"') => return Ok((Cow::Owned(out), at + 1)),
            Some(b'\\') => {
                let (character, after) = escape(bytes, at + 1)?;
                out.push(character);
                from = after;
                at = plain_until(bytes, after);
            }
            Some(_) => return Err((ParseErrorKind::Syntax("control characters to be escaped"), at)),
            None => return Err((ParseErrorKind::Incomplete, at)),
        }
    }
}

/// Parses the characters after a backslash.
fn escape(bytes: &[u8], at: usize) -> Result<(char, usize), Fault> {
    let plain = match bytes.get(at) {
        Some(b'u') => return unicode(bytes, at + 1),
        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(*byte),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(_) => return Err((ParseErrorKind::Syntax("one of `\" \\ / b f n r t u` after a backslash"), at)),
        None => return Err((ParseErrorKind::Incomplete, at)),
    };
    Ok((plain, at + 1))
}

/// Parses four digits, and the second escape if they are the first half of a surrogate pair.
fn unicode(bytes: &[u8], at: usize) -> Result<(char, usize), Fault> {
    let lone = (ParseErrorKind::LoneSurrogate, at);
    let unit = hexadecimal(bytes, at)?;
    if !(0xD800..0xE000).contains(&unit) {
        return char::from_u32(unit).map(|character| (character, at + 4)).ok_or(lone);
    }
    if unit >= 0xDC00 || bytes.get(at + 4..at + 6) != Some(b"\\u") {
        return Err(lone);
    }
    let low = hexadecimal(bytes, at + 6)?;
    if !(0xDC00..0xE000).contains(&low) {
        return Err(lone);
    }
    char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).map(|character| (character, at + 10)).ok_or(lone)
}

fn hexadecimal(bytes: &[u8], at: usize) -> Result<u32, Fault> {
    let mut value = 0;
    for place in at..at + 4 {
        let digit = match bytes.get(place) {
            None => return Err((ParseErrorKind::Incomplete, place)),
            Some(byte) => char::from(*byte).to_digit(16),
        };
        value = value * 16 + digit.ok_or((ParseErrorKind::Syntax("four hexadecimal digits"), place))?;
    }
    Ok(value)
}
