//! [`Json`]: a cursor over one JSON document, for frames of a known shape from an untrusted sender.
//!
//! A stream has very many small frames, so this file reads the common values itself: short strings, small numbers,
//! words and shallow nested values. `serde_json` reads the rare ones: deeply nested values and `\u` escapes.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::text::lex::plain_until;

/// The deepest nesting of a value that this file skips itself. `serde_json` skips deeper ones, each with an allocation
/// and 500 more instructions.
const SHALLOW: u8 = 4;

/// The text is not JSON, or an object repeats a key that its shape names.
#[derive(Debug)]
pub(crate) struct Invalid;

/// A position in a document.
#[derive(Clone)]
pub(crate) struct Json<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Json<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte after white space; a zero byte at the end of the text.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => *byte,
            _ => self.after_space(),
        }
    }

    // Inlining it would take registers from each function that reads a byte.
    #[cold]
    #[inline(never)]
    fn after_space(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), Invalid> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(Invalid) }
    }

    /// Reads an object: `member` reads or skips the value of each key.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.expect(b'"')?;
            if let Some(key) = self.plain() {
                self.expect(b':')?;
                member(self, key)?;
            } else {
                let key = self.escaped()?;
                self.expect(b':')?;
                member(self, &key)?;
            }
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Reads an array: `item` reads or skips each value.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Invalid>) -> Result<(), Invalid> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Reads a string; it is borrowed if it contains no escape.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Invalid> {
        self.expect(b'"')?;
        match self.plain() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.escaped().map(Cow::Owned),
        }
    }

    /// The rest of a string after its first quote; `None` if it contains an escape or is invalid.
    #[inline]
    fn plain(&mut self) -> Option<&'a str> {
        let end = self.plain_end()?;
        let text = self.text.get(self.at..end)?;
        self.at = end + 1;
        Some(text)
    }

    /// The offset of the closing quote of a string without escapes.
    #[inline]
    fn plain_end(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let end = plain_until(bytes, self.at);
        (bytes.get(end) == Some(&b'"')).then_some(end)
    }

    /// The rest of a string after its first quote, with its escapes replaced.
    fn escaped(&mut self) -> Result<String, Invalid> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let (mut read, mut plain, mut escape) = (String::new(), start, plain_until(bytes, start));
        loop {
            read.push_str(self.slice(plain, escape)?);
            read.push(match (bytes.get(escape), bytes.get(escape + 1)) {
                (Some(b'"'), _) => {
                    self.at = escape + 1;
                    return Ok(read);
                }
                (Some(b'\\'), Some(byte @ (b'"' | b'\\' | b'/'))) => char::from(*byte),
                (Some(b'\\'), Some(b'n')) => '\n',
                (Some(b'\\'), Some(b'r')) => '\r',
                (Some(b'\\'), Some(b't')) => '\t',
                (Some(b'\\'), Some(b'b')) => '\u{8}',
                (Some(b'\\'), Some(b'f')) => '\u{c}',
                (Some(b'\\'), Some(b'u')) => return self.by_serde(start - 1),
                _ => return Err(Invalid),
            });
            plain = escape + 2;
            escape = plain_until(bytes, plain);
        }
    }

    /// Reads a number; `None` if it is not an integer.
    pub(crate) fn integer(&mut self) -> Result<Option<i64>, Invalid> {
        let start = self.at;
        // Most integers are indices of one digit, which need no parsing.
        if let Some([digit @ b'0'..=b'9', next, ..]) = self.text.as_bytes().get(start..)
            && !matches!(next, b'0'..=b'9' | b'.' | b'e' | b'E')
        {
            self.at += 1;
            return Ok(Some(i64::from(digit - b'0')));
        }
        self.number()?;
        Ok(self.slice(start, self.at)?.parse().ok())
    }

    fn number(&mut self) -> Result<(), Invalid> {
        self.next_is(|byte| byte == b'-');
        if !self.next_is(|byte| byte == b'0') {
            self.digits()?;
        }
        if self.next_is(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.next_is(|byte| matches!(byte, b'e' | b'E')) {
            self.next_is(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Invalid> {
        let mut found = Err(Invalid);
        while self.next_is(|byte| byte.is_ascii_digit()) {
            found = Ok(());
        }
        found
    }

    /// Reads any value and returns its JSON text.
    pub(crate) fn raw(&mut self) -> Result<&'a str, Invalid> {
        self.peek();
        let start = self.at;
        self.skip()?;
        self.slice(start, self.at)
    }

    /// The text between an earlier position and this one.
    pub(crate) fn since(&self, start: &Self) -> &'a str {
        self.text.get(start.at..self.at).unwrap_or_default()
    }

    /// Skips any value.
    pub(crate) fn skip(&mut self) -> Result<(), Invalid> {
        self.skip_within(SHALLOW)
    }

    fn skip_within(&mut self, levels: u8) -> Result<(), Invalid> {
        match self.peek() {
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.skip_string(),
            b'{' if levels > 0 => self.skip_items(b'}', |json| {
                json.skip_string()?;
                json.expect(b':')?;
                json.skip_within(levels - 1)
            }),
            b'[' if levels > 0 => self.skip_items(b']', |json| json.skip_within(levels - 1)),
            // At any depth, `serde_json` skips without recursion.
            b'{' | b'[' => self.by_serde::<IgnoredAny>(self.at).map(drop),
            _ => Err(Invalid),
        }
    }

    /// Skips the next string.
    fn skip_string(&mut self) -> Result<(), Invalid> {
        self.expect(b'"')?;
        let start = self.at - 1;
        // Escapes are checked, except that half a surrogate pair is allowed.
        let Some(end) = self.plain_end() else { return self.by_serde::<IgnoredAny>(start).map(drop) };
        self.at = end + 1;
        Ok(())
    }

    /// Reads members or items after an opening bracket, up to the closing one.
    fn skip_items(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<(), Invalid>) -> Result<(), Invalid> {
        self.at += 1;
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.take(b',') {
                return self.expect(close);
            }
        }
    }

    /// Lets `serde_json` read the value at `start`.
    fn by_serde<T: Deserialize<'a>>(&mut self, start: usize) -> Result<T, Invalid> {
        let rest = self.text.get(start..).ok_or(Invalid)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let value = values.next().ok_or(Invalid)?.map_err(|_| Invalid)?;
        self.at = start + values.byte_offset();
        Ok(value)
    }

    fn word(&mut self, word: &str) -> Result<(), Invalid> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += word.len();
        if rest.starts_with(word.as_bytes()) { Ok(()) } else { Err(Invalid) }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Invalid> {
        if self.take(byte) { Ok(()) } else { Err(Invalid) }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        // Providers write no white space, so the first comparison finds most bytes.
        let found = self.text.as_bytes().get(self.at) == Some(&byte) || self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn next_is(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.text.as_bytes().get(self.at).copied().is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    fn slice(&self, start: usize, end: usize) -> Result<&'a str, Invalid> {
        self.text.get(start..end).ok_or(Invalid)
    }
}
