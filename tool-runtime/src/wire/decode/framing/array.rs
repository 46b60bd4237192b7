//! [`ObjectArray`]: cuts one JSON array into its objects, each as soon as it is complete (rule G1 of `wire`).

use memchr::{memchr2, memchr3};

use crate::wire::WireErrorKind;
use crate::wire::decode::framing::{Each, Frame, TOO_LONG};

/// A JSON array of objects that arrives in pieces. Counting braces finds the objects at any depth; the reader of a
/// frame checks that it is JSON.
pub(crate) struct ObjectArray {
    max: usize,
    place: Expected,
    /// The beginning of an object that has not ended.
    object: Vec<u8>,
}

enum Expected {
    Start,
    /// After the opening bracket: an object or the end.
    First,
    /// After a comma: an object.
    Next,
    /// After an object: a comma or the end.
    After,
    /// Inside an object: the number of open braces, and whether the position is in a string.
    Inside(usize, Strings),
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strings {
    Outside,
    Inside,
    Escaped,
}

impl ObjectArray {
    pub(crate) const fn new(max: usize) -> Self {
        Self { max, place: Expected::Start, object: Vec::new() }
    }

    /// Whether the closing bracket was read.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.place, Expected::Closed)
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8], each: Each<'_>) -> Result<(), WireErrorKind> {
        loop {
            if let Expected::Inside(depth, strings) = &mut self.place {
                let Some(end) = end_of_object(bytes, depth, strings) else {
                    self.keep(bytes)?;
                    return Ok(());
                };
                let (rest_of_object, rest) = bytes.split_at_checked(end).unwrap_or((bytes, b""));
                bytes = rest;
                self.place = Expected::After;
                if !self.whole(rest_of_object, each)? {
                    return Ok(());
                }
            }
            let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
            self.place = match (&self.place, byte) {
                (_, b' ' | b'\n' | b'\r' | b'\t') => {
                    bytes = rest;
                    continue;
                }
                (Expected::Start, b'[') => Expected::First,
                (Expected::After, b',') => Expected::Next,
                (Expected::First | Expected::After, b']') => Expected::Closed,
                // The brace stays in the input, because it belongs to the object.
                (Expected::First | Expected::Next, b'{') => {
                    self.place = Expected::Inside(0, Strings::Outside);
                    continue;
                }
                _ => return Err(WireErrorKind::MalformedFrame),
            };
            bytes = rest;
        }
    }

    /// Ends an object with these bytes. Returns whether reading continues.
    fn whole(&mut self, bytes: &[u8], each: Each<'_>) -> Result<bool, WireErrorKind> {
        if self.object.is_empty() {
            return if bytes.len() > self.max { Err(TOO_LONG) } else { Ok(each(&Frame { event: b"", data: bytes })) };
        }
        self.keep(bytes)?;
        let go_on = each(&Frame { event: b"", data: &self.object });
        self.object.clear();
        Ok(go_on)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), WireErrorKind> {
        if self.object.len() + bytes.len() > self.max {
            return Err(TOO_LONG);
        }
        self.object.extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns the offset after the brace that closes the object; `None` if these bytes do not contain it.
fn end_of_object(bytes: &[u8], depth: &mut usize, strings: &mut Strings) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        if *strings == Strings::Escaped {
            rest.first()?;
            *strings = Strings::Inside;
            at += 1;
        } else if *strings == Strings::Inside {
            let found = memchr2(b'"', b'\\', rest)?;
            *strings = if rest.get(found) == Some(&b'"') { Strings::Outside } else { Strings::Escaped };
            at += found + 1;
        } else {
            let found = memchr3(b'{', b'}', b'"', rest)?;
            at += found + 1;
            match rest.get(found) {
                Some(b'{') => *depth += 1,
                Some(b'"') => *strings = Strings::Inside,
                _ => {
                    *depth = depth.saturating_sub(1);
                    if *depth == 0 {
                        return Some(at);
                    }
                }
            }
        }
    }
}
