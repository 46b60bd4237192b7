//! Navigates JSON text without parsing it: finds where strings begin and end.

/// The lowest bit of each byte of a word (`ONES`), and the highest bit (`HIGH`).
const ONES: u64 = u64::MAX / 255;
const HIGH: u64 = ONES << 7;

/// Returns the offset of the next quote, backslash or control character, or the end.
///
/// Reads eight bytes at a time, because most strings are short, and sixteen after the first 24. Vectors of sixteen
/// bytes take fewer instructions but twice the time: without `unsafe`, compilers load a vector through memory, and each
/// string waits for the load.
#[inline(never)]
pub(crate) fn plain_until(bytes: &[u8], mut at: usize) -> usize {
    let near = at.saturating_add(24);
    while let Some(word) = word(bytes, at) {
        let ends = ends(word);
        if ends != 0 {
            return at + first(ends);
        }
        at += 8;
        if at == near {
            at = past_plain_pairs(bytes, at);
        }
    }
    while let Some(byte) = bytes.get(at)
        && !matches!(byte, b'"' | b'\\' | 0..0x20)
    {
        at += 1;
    }
    at
}

/// Skips pairs of words without quotes, backslashes and control characters, with one branch for both words. Not
/// inlined, because the caller would then save registers even for a short string.
#[inline(never)]
fn past_plain_pairs(bytes: &[u8], mut at: usize) -> usize {
    while let (Some(one), Some(other)) = (word(bytes, at), word(bytes, at + 8))
        && ends(one) | ends(other) == 0
    {
        at += 16;
    }
    at
}

/// Whether a string has no quote, backslash or control character. Reads eight bytes at a time, because most texts are
/// too short for sixteen.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    if words.iter().any(|word| ends(u64::from_le_bytes(*word)) != 0) {
        return false;
    }
    // Reading the last eight bytes, which overlap the previous word, is faster than reading the rest one by one.
    match bytes.last_chunk() {
        Some(last) => ends(u64::from_le_bytes(*last)) == 0,
        None => rest.iter().all(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)),
    }
}

/// Returns the next eight bytes. `None` if fewer remain.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// Marks the quotes, backslashes and control characters of eight bytes with their highest bits. After the first one,
/// other bytes may be marked too.
#[inline]
const fn ends(word: u64) -> u64 {
    // With its second bit flipped, the quote is 0x20; control characters stay below, all others above.
    let low = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * b'\\' as u64);
    // A subtraction may borrow into the bytes after the first hit.
    (low.wrapping_sub(ONES * 0x21) & !low | backslash.wrapping_sub(ONES) & !backslash) & HIGH
}

/// Returns the index of the first marked byte.
#[inline]
const fn first(ends: u64) -> usize {
    (ends.trailing_zeros() / 8) as usize
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

/// Returns offset and value of the bytes outside of strings, including the quotes around strings.
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
            // These lengths cover sixteen bytes at a time, eight at a time, the last eight, and one by one.
            for (place, length) in (1..=57).flat_map(|length| (0..length).map(move |place| (place, length))) {
                let mut bytes = vec![b'x'; length];
                bytes[place] = byte;
                let stops = matches!(byte, b'"' | b'\\' | 0..0x20);
                assert_eq!(plain_until(&bytes, 0), if stops { place } else { length }, "{byte} at {place} of {length}");
                assert_eq!(is_plain(&bytes), !stops, "{byte} at {place} of {length}");
            }
        }
    }
}
