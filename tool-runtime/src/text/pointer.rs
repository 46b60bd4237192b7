//! JSON Pointers (RFC 6901): builds them segment by segment, and splits them, with the right escapes.

use std::borrow::Cow;

/// Appends a member name or an index, with its slash.
pub(crate) fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Returns the pointer to a member of the root.
pub(crate) fn segment(name: &str) -> String {
    let mut pointer = String::with_capacity(name.len() + 1);
    push(&mut pointer, name);
    pointer
}

/// Returns the unescaped segments; the root has none. `None` if the text is not a pointer.
pub(crate) fn split(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    let rest = if pointer.is_empty() { None } else { Some(pointer.strip_prefix('/')?) };
    Some(rest.into_iter().flat_map(|rest| rest.split('/')).map(unescape))
}

/// Returns the name that a segment encodes.
pub(crate) fn unescape(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
}

/// Returns the index of an array that a segment encodes: digits without a leading zero.
pub(crate) fn index(segment: &str) -> Option<usize> {
    let is_canonical = segment == "0" || segment.bytes().next().is_some_and(|first| matches!(first, b'1'..=b'9'));
    segment.parse().ok().filter(|_| is_canonical)
}

/// Returns the name that a segment encodes inside the fragment of a URI. `None` if a percent escape is invalid.
pub(crate) fn percent_unescape(segment: &str) -> Option<String> {
    Some(unescape(&percent_decode(segment)?).into_owned())
}

/// Decodes the percent escapes of a URI fragment. `None` if one is invalid.
pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        // `from_str_radix` would also accept a sign.
        let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = rest.get(2..)?;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_read_back() {
        let names = ["", "a", "a/b~c", "~1", "0"];
        let mut pointer = String::new();
        names.iter().for_each(|name| push(&mut pointer, name));
        assert_eq!(pointer, "//a/a~1b~0c/~01/0");
        assert!(split(&pointer).unwrap().eq(names));
        assert_eq!(split("").unwrap().count(), 0);
        assert!(split("a").is_none());
        assert_eq!(segment("a/b"), "/a~1b");
    }

    #[test]
    fn only_canonical_numbers_are_read() {
        assert_eq!(["0", "10"].map(index), [Some(0), Some(10)]);
        assert_eq!(["", "01", "00", "+1", "-1", "1a", "99999999999999999999"].map(index), [None; 7]);
        assert_eq!(percent_decode("a%2Fb").as_deref(), Some("a/b"));
        assert!(["%", "%2", "%+5", "%-5", "%zz", "%ff"].iter().all(|text| percent_decode(text).is_none()));
    }
}
