//! The parser: reads text into a [`Tree`] in one pass, within limits.

use std::borrow::Cow;

use crate::json::{Limits, ParseError, ParseErrorKind, Tree, duplicates, number, string};

/// The initial capacity for members and items: without it, ordinary arguments need five allocations as the lists grow.
const ROOM: usize = 16;

/// Parses the arguments of a call: one JSON object, optionally with white space around it. Text that is empty or only
/// white space means `{}`.
///
/// It also refuses a byte-order mark, a repeated property name, half a surrogate pair, an integer that fits neither
/// `i64` nor `u64`, and a number that is not finite.
///
/// # Errors
/// The text is not such an object, or exceeds the limits.
pub fn parse<'t>(text: &'t str, limits: &Limits) -> Result<Tree<'t>, ParseError> {
    parse_line(text, limits).map(|(tree, _)| tree)
}

/// Like [`parse`]. Also returns whether the text begins with `{`, ends with `}`, and has no line break or tab between
/// its tokens.
pub(crate) fn parse_line<'t>(text: &'t str, limits: &Limits) -> Result<(Tree<'t>, bool), ParseError> {
    if text.len() <= limits.bytes && text.bytes().all(is_space) {
        return Ok((Tree::Object(Vec::new()), false));
    }
    match Parser::read(text, &limits.at_most())? {
        (tree @ Tree::Object(_), breaks) => Ok((tree, !breaks && text.starts_with('{') && text.ends_with('}'))),
        _ => Err(ParseError::new(ParseErrorKind::NotAnObject, text, 0)),
    }
}

/// Parses one JSON value of any type by the rules of [`parse`]. Empty text is an error.
///
/// # Errors
/// The text is not JSON by these rules, or exceeds the limits.
pub fn parse_value<'t>(text: &'t str, limits: &Limits) -> Result<Tree<'t>, ParseError> {
    Parser::read(text, &limits.at_most()).map(|(tree, _)| tree)
}

/// Parses a record that this crate wrote. A record nests values of up to 128 levels within a few more levels.
///
/// # Errors
/// The text is not JSON by these rules.
pub(crate) fn parse_record(text: &str) -> Result<Tree<'_>, ParseError> {
    Parser::read(text, &Limits::RECORD).map(|(tree, _)| tree)
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// The parser of one text. After an error, `at` is the place of the error.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    limit: usize,
    depth: usize,
    /// Whether white space other than blanks was read.
    breaks: bool,
    // The children of all open arrays and objects. A container takes its children when it ends, because their number is
    // then known and one allocation is enough.
    items: Vec<Tree<'t>>,
    members: Vec<(Cow<'t, str>, Tree<'t>)>,
}

type Read<T> = Result<T, ParseErrorKind>;

impl<'t> Parser<'t> {
    fn read(text: &'t str, limits: &Limits) -> Result<(Tree<'t>, bool), ParseError> {
        if text.len() > limits.bytes {
            return Err(ParseError::new(ParseErrorKind::Bytes { limit: limits.bytes }, text, limits.bytes));
        }
        let mut parser = Parser {
            text,
            at: 0,
            limit: limits.depth,
            depth: 0,
            breaks: false,
            items: Vec::new(),
            members: Vec::with_capacity(ROOM),
        };
        let tree = parser.document().map_err(|kind| ParseError::new(kind, text, parser.at))?;
        Ok((tree, parser.breaks))
    }

    fn document(&mut self) -> Read<Tree<'t>> {
        self.space();
        let tree = self.value()?;
        self.space();
        if self.at < self.text.len() { Err(ParseErrorKind::Trailing) } else { Ok(tree) }
    }

    fn value(&mut self) -> Read<Tree<'t>> {
        match self.peek() {
            Some(b'"') => self.string().map(Tree::String),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => {
                let (tree, end) = number::scan(self.text, self.at).map_err(|fault| self.fault(fault))?;
                self.at = end;
                Ok(tree)
            }
            Some(b't') => self.word("true", Tree::Bool(true)),
            Some(b'f') => self.word("false", Tree::Bool(false)),
            Some(b'n') => self.word("null", Tree::Null),
            Some(b'N' | b'I') => Err(ParseErrorKind::Syntax("a value; JSON has no `NaN` and no `Infinity`")),
            Some(b'\'') => Err(ParseErrorKind::Syntax("a value; strings are written in double quotes")),
            Some(b'/') => Err(ParseErrorKind::Syntax("a value; JSON has no comments")),
            Some(b']' | b'}') => Err(ParseErrorKind::Syntax("a value before the closing bracket")),
            Some(_) => Err(ParseErrorKind::Syntax("a JSON value")),
            None => Err(ParseErrorKind::Incomplete),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Read<Tree<'t>>) -> Read<Tree<'t>> {
        if self.depth >= self.limit {
            return Err(ParseErrorKind::Depth { limit: self.limit });
        }
        self.depth += 1;
        self.at += 1;
        self.space();
        let tree = read(self);
        self.depth -= 1;
        tree
    }

    fn array(&mut self) -> Read<Tree<'t>> {
        if self.take(b']') {
            return Ok(Tree::Array(Vec::new()));
        }
        if self.items.capacity() == 0 {
            self.items.reserve(ROOM);
        }
        let start = self.items.len();
        loop {
            if let Some(plain) = self.plain() {
                self.items.push(Tree::String(Cow::Borrowed(plain)));
            } else if let Some(integer) = self.integer() {
                self.items.push(Tree::Int(integer));
            } else {
                let item = self.value()?;
                self.items.push(item);
            }
            if self.closed(b']', "`,` or `]`")? {
                return Ok(Tree::Array(take_from(&mut self.items, start)));
            }
        }
    }

    fn object(&mut self) -> Read<Tree<'t>> {
        if self.take(b'}') {
            return Ok(Tree::Object(Vec::new()));
        }
        let start = self.members.len();
        loop {
            let name = self.name(start)?;
            self.space();
            if !self.take(b':') {
                return Err(self.expected("`:` after a property name"));
            }
            self.space();
            if let Some(plain) = self.plain() {
                self.members.push((name, Tree::String(Cow::Borrowed(plain))));
            } else if let Some(integer) = self.integer() {
                self.members.push((name, Tree::Int(integer)));
            } else {
                let value = self.value()?;
                self.members.push((name, value));
            }
            if self.closed(b'}', "`,` or `}`")? {
                // The outermost object is closed, so all collected members belong to it.
                let members = match self.depth {
                    1 => std::mem::take(&mut self.members),
                    _ => take_from(&mut self.members, start),
                };
                return if duplicates::none_among(&members) {
                    Ok(Tree::Object(members))
                } else {
                    Err(ParseErrorKind::DuplicateKey)
                };
            }
        }
    }

    fn name(&mut self, start: usize) -> Read<Cow<'t, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a property name in double quotes"));
        }
        let at = self.at;
        let name = self.string()?;
        if duplicates::is_taken(self.members.get(start..).unwrap_or_default(), &name) {
            self.at = at;
            return Err(ParseErrorKind::DuplicateKey);
        }
        Ok(name)
    }

    /// Reads the end of a container (`true`), or a comma before the next item (`false`).
    fn closed(&mut self, bracket: u8, expected: &'static str) -> Read<bool> {
        self.space();
        if self.take(b',') {
            self.space();
            return Ok(false);
        }
        if self.take(bracket) { Ok(true) } else { Err(self.expected(expected)) }
    }

    /// Reads a string without escapes, the most common kind; `None` if the next value is something else.
    ///
    /// The result is returned in registers. A `Result<Cow<str>, _>` would be written to memory in pieces and then
    /// copied as a whole, which waits for the pieces. This cost 2,100 instructions and a seventh of the time of a call
    /// with 40 strings.
    #[inline]
    fn plain(&mut self) -> Option<&'t str> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let plain = string::plain(self.text, self.at + 1)?;
        self.at += plain.len() + 2;
        Some(plain)
    }

    /// Reads a common integer and returns it in a register; `None` if the next value is something else.
    #[inline]
    fn integer(&mut self) -> Option<i64> {
        let (integer, end) = number::plain(self.text.as_bytes(), self.at)?;
        self.at = end;
        Some(integer)
    }

    #[inline]
    fn string(&mut self) -> Read<Cow<'t, str>> {
        match self.plain() {
            Some(plain) => Ok(Cow::Borrowed(plain)),
            None => self.escaped(),
        }
    }

    #[cold]
    fn escaped(&mut self) -> Read<Cow<'t, str>> {
        let (string, end) = string::resolve(self.text, self.at + 1).map_err(|fault| self.fault(fault))?;
        self.at = end;
        Ok(string)
    }

    fn word(&mut self, word: &str, tree: Tree<'t>) -> Read<Tree<'t>> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(tree);
        }
        Err(if word.as_bytes().starts_with(rest) {
            ParseErrorKind::Incomplete
        } else {
            ParseErrorKind::Syntax("a JSON value")
        })
    }

    fn expected(&self, expected: &'static str) -> ParseErrorKind {
        if self.peek().is_none() { ParseErrorKind::Incomplete } else { ParseErrorKind::Syntax(expected) }
    }

    fn fault(&mut self, (kind, at): (ParseErrorKind, usize)) -> ParseErrorKind {
        self.at = at;
        kind
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek().filter(|byte| is_space(*byte)) {
            self.breaks |= byte != b' ';
            self.at += 1;
        }
    }
}

/// Moves the items from `start` on into a vector of the exact size.
fn take_from<T>(open: &mut Vec<T>, start: usize) -> Vec<T> {
    if start > 0 {
        return open.split_off(start);
    }
    // `split_off(0)` would move the spare capacity out of `open`, too.
    let mut all = Vec::with_capacity(open.len());
    all.append(open);
    all
}
