//! JSON numbers: exact integers where possible, finite floats otherwise.

use serde_json::Number;

use crate::json::{ParseErrorKind, Tree};

/// Up to this number, every integer is exactly a float, and a float without a fraction is exactly an integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Parses the integer that starts at `at`, and returns it with its end. `None` unless it is an integer without a
/// leading zero and with at most 18 digits.
#[inline]
pub(super) fn plain(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let (mut value, mut end) = (0_i64, first);
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        end += 1;
    }
    let is_plain = match end - first {
        1 => true,
        2..=18 => bytes.get(first) != Some(&b'0'),
        _ => false,
    };
    let is_whole = !matches!(bytes.get(end), Some(b'.' | b'e' | b'E'));
    (is_plain && is_whole).then(|| (if negative { -value } else { value }, end))
}

/// Parses the number that starts at `at`, and returns it with its end. The error has its place.
pub(super) fn scan(text: &str, at: usize) -> Result<(Tree<'static>, usize), (ParseErrorKind, usize)> {
    let bytes = text.as_bytes();
    let negative = bytes.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let (value, end) = integer(bytes, first)?;
    if !matches!(bytes.get(end), Some(b'.' | b'e' | b'E')) {
        return signed(text, negative, value, first, end)
            .map(|tree| (tree, end))
            .ok_or((ParseErrorKind::IntegerRange, at));
    }
    let end = exponent(bytes, fraction(bytes, end)?)?;
    let number = text.get(at..end).and_then(|digits| digits.parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() => Ok((from_float(number), end)),
        _ => Err((ParseErrorKind::NotFinite, at)),
    }
}

/// Converts a `serde_json` number. JSON has no infinite numbers, so such a number becomes `null`.
pub(super) fn from_number(number: &Number) -> Tree<'static> {
    if let Some(number) = number.as_i64() {
        return Tree::Int(number);
    }
    if let Some(number) = number.as_u64() {
        return Tree::UInt(number);
    }
    match number.as_f64() {
        Some(number) if number.is_finite() => from_float(number),
        _ => Tree::Null,
    }
}

/// Converts a float. A float without a fraction, up to 2^53, becomes an integer; `-0.0` does too.
#[expect(clippy::cast_possible_truncation, reason = "integral and at most 2^53")]
pub(super) fn from_float(number: f64) -> Tree<'static> {
    if number.abs() <= EXACT && number.fract() == 0.0 { Tree::Int(number as i64) } else { Tree::Float(number) }
}

/// Parses digits without a leading zero. The value is exact for up to 19 digits.
fn integer(bytes: &[u8], first: usize) -> Result<(u64, usize), (ParseErrorKind, usize)> {
    match bytes.get(first) {
        Some(b'0') if matches!(bytes.get(first + 1), Some(b'0'..=b'9')) => {
            Err((ParseErrorKind::Syntax("a number without leading zeros"), first))
        }
        Some(b'0'..=b'9') => {
            let (mut value, mut count) = (0_u64, 0);
            for digit in bytes.get(first..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()) {
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                count += 1;
            }
            Ok((value, first + count))
        }
        None => Err((ParseErrorKind::Incomplete, first)),
        Some(b'I') => Err((ParseErrorKind::Syntax("a number; JSON has no `Infinity`"), first)),
        Some(_) => Err((ParseErrorKind::Syntax("a digit"), first)),
    }
}

fn signed(text: &str, negative: bool, value: u64, first: usize, end: usize) -> Option<Tree<'static>> {
    let value = if end - first <= 19 { value } else { text.get(first..end)?.parse().ok()? };
    if negative {
        return 0_i64.checked_sub_unsigned(value).map(Tree::Int);
    }
    Some(i64::try_from(value).map_or(Tree::UInt(value), Tree::Int))
}

fn fraction(bytes: &[u8], at: usize) -> Result<usize, (ParseErrorKind, usize)> {
    if bytes.get(at) == Some(&b'.') { digits(bytes, at + 1) } else { Ok(at) }
}

fn exponent(bytes: &[u8], at: usize) -> Result<usize, (ParseErrorKind, usize)> {
    match (bytes.get(at), bytes.get(at + 1)) {
        (Some(b'e' | b'E'), Some(b'+' | b'-')) => digits(bytes, at + 2),
        (Some(b'e' | b'E'), _) => digits(bytes, at + 1),
        _ => Ok(at),
    }
}

/// Parses one or more digits.
fn digits(bytes: &[u8], at: usize) -> Result<usize, (ParseErrorKind, usize)> {
    let count = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    match (count, bytes.get(at)) {
        (0, None) => Err((ParseErrorKind::Incomplete, at)),
        (0, _) => Err((ParseErrorKind::Syntax("a digit"), at)),
        _ => Ok(at + count),
    }
}
