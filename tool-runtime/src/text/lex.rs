//! Finds its way through JSON text without reading it: where strings begin and end.

/// The lowest bit of each byte of a word, and the highest.
const ONES: u64 = u64::MAX / 255;
const HIGH: u64 = ONES << 7;

/// Returns the offset of the next quote, backslash or control character, or the end. Sixteen bytes at a time: most strings
/// are shorter, and more text follows them.
#[inline(never)]
pub(crate) fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let plain = marks(chunk).trailing_zeros() / 8;
        at += plain as usize;
        if plain < 16 {
            return at;
        }
    }
    plain_at_end(bytes, at)
}

/// Sets each byte that ends a piece of plain text. With `|`, because then compilers make seven vector instructions of it:
/// with `||` or `matches!` it is a branch for each byte, and three times as slow. Always inlined, because a call saves six
/// registers: a short string would take 57 instructions rather than 37.
#[inline(always)]
#[expect(clippy::inline_always, clippy::needless_bitwise_bool, reason = "see above")]
fn marks(chunk: &[u8; 16]) -> u128 {
    let ends = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
    let mut marks = [0; 16];
    for (mark, byte) in marks.iter_mut().zip(chunk) {
        *mark = if ends(*byte) { 0xff } else { 0 };
    }
    u128::from_le_bytes(marks)
}

/// The same for the last few bytes. Not inlined: what it needs would have to be saved for each string.
#[inline(never)]
fn plain_at_end(bytes: &[u8], mut at: usize) -> usize {
    // The last string of a frame: 27 instructions rather than 50.
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        match first_in(*word) {
            Some(plain) => return at + plain,
            None => at += 8,
        }
    }
    while let Some(byte) = bytes.get(at)
        && !matches!(byte, b'"' | b'\\' | 0..0x20)
    {
        at += 1;
    }
    at
}

/// Whether a text has no quote, backslash or control character. Eight bytes at a time, because most texts are too short for
/// sixteen.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    if words.iter().any(|word| first_in(*word).is_some()) {
        return false;
    }
    // The last eight once more cost less than the few that are left one by one.
    match bytes.last_chunk() {
        Some(last) => first_in(*last).is_none(),
        None => rest.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)),
    }
}

/// The offset of the first quote, backslash or control character of eight bytes.
#[inline]
fn first_in(chunk: [u8; 8]) -> Option<usize> {
    let word = u64::from_le_bytes(chunk);
    // With its second bit turned over the quote is 0x20, control characters stay below, all others above.
    let low = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * u64::from(b'\\'));
    // A subtraction may borrow into the bytes after the first hit, so only the lowest bit that is set counts.
    let found = (low.wrapping_sub(ONES * 0x21) & !low | backslash.wrapping_sub(ONES) & !backslash) & HIGH;
    (found != 0).then(|| (found.trailing_zeros() / 8) as usize)
}

/// Returns the offset of the quote that closes the string whose first character is at `start`; the end if none does.
pub(crate) fn closing_quote(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at = plain_until(bytes, at);
        match bytes.get(at) {
            Some(b'"') | None => return at.min(bytes.len()),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Returns offset and value of the bytes outside strings; the quotes around strings are among them.
pub(crate) fn outside_strings(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = text.as_bytes();
    let (mut at, mut opened) = (0, false);
    std::iter::from_fn(move || {
        if std::mem::take(&mut opened) {
            at = closing_quote(bytes, at);
            let byte = *bytes.get(at)?;
            at += 1;
            return Some((at - 1, byte));
        }
        let byte = *bytes.get(at)?;
        opened = byte == b'"';
        at += 1;
        Some((at - 1, byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_ends_at_its_own_quote() {
        for (text, outside) in [
            ("", ""),
            ("[1]", "[1]"),
            (r#"{"a\"\\":"[{","b" : 1}"#, r#"{"":"","" : 1}"#),
            ("\"\u{1}a longer text with a control\"]", "\"\"]"),
            (r#"["cut short\"#, "[\""),
            (r#"["cut"#, "[\""),
        ] {
            let found: Vec<u8> = outside_strings(text).map(|(_, byte)| byte).collect();
            assert_eq!(String::from_utf8_lossy(&found), outside, "{text}");
        }
    }

    #[test]
    fn every_byte_is_told_apart() {
        for byte in 0..=u8::MAX {
            // Sixteen at a time, and one by one; eight at a time, and the last eight.
            for (place, length) in (1..=41).flat_map(|length| (0..length).map(move |place| (place, length))) {
                let mut bytes = vec![b'x'; length];
                bytes[place] = byte;
                let stops = matches!(byte, b'"' | b'\\' | 0..0x20);
                assert_eq!(plain_until(&bytes, 0), if stops { place } else { length }, "{byte} at {place} of {length}");
                assert_eq!(is_plain(&bytes), !stops, "{byte} at {place} of {length}");
            }
        }
    }
}
