//! Canonical JSON: the text of definitions, and the input of digests.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::Value;

use crate::json::Tree;
use crate::json::quote;
use crate::tool::Hash;

/// The initial capacity, which fits most arguments.
const ROOM: usize = 256;

/// A value that can be written canonically: [`Tree`] and [`serde_json::Value`].
pub(crate) trait Canonical {
    /// The value as a tree.
    fn tree(&self) -> Cow<'_, Tree<'_>>;
}

impl Canonical for Tree<'_> {
    fn tree(&self) -> Cow<'_, Tree<'_>> {
        Cow::Borrowed(self)
    }
}

impl Canonical for Value {
    fn tree(&self) -> Cow<'_, Tree<'_>> {
        Cow::Owned(Tree::from_value(self))
    }
}

/// Writes JSON without white space, with member names sorted by UTF-16 code units, and integers with every digit.
#[must_use]
pub(crate) fn to_text<T: Canonical + ?Sized>(value: &T) -> String {
    let mut out = String::with_capacity(ROOM);
    write(&value.tree(), &mut out, true);
    out
}

/// Like [`to_text`], but by RFC 8785, in which every number is a double: integers beyond 2^53 are rounded.
#[must_use]
pub(crate) fn rfc8785<T: Canonical + ?Sized>(value: &T) -> String {
    let mut out = String::with_capacity(ROOM);
    write(&value.tree(), &mut out, false);
    out
}

/// The SHA-256 digest of bytes.
#[must_use]
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> Hash {
    Hash::sha256(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "RFC 8785 has only doubles")]
fn write(tree: &Tree<'_>, out: &mut String, exact: bool) {
    match tree {
        Tree::Null => out.push_str("null"),
        Tree::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Tree::Int(number) if exact => write_integer(*number, out),
        Tree::UInt(number) if exact => write_integer(*number, out),
        Tree::Int(number) => write_float(*number as f64, out),
        Tree::UInt(number) => write_float(*number as f64, out),
        Tree::Float(number) => write_float(*number, out),
        Tree::String(text) => quote(out, text),
        Tree::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out, exact);
            }
            out.push(']');
        }
        Tree::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(one, _), (two, _)| by_units(one, two));
            out.push('{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                quote(out, name);
                out.push(':');
                write(value, out, exact);
            }
            out.push('}');
        }
    }
}

fn write_integer(number: impl itoa::Integer, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Compares by UTF-16 code units; for ASCII, this is the order of bytes.
fn by_units(one: &str, two: &str) -> Ordering {
    if one.is_ascii() && two.is_ascii() { one.cmp(two) } else { one.encode_utf16().cmp(two.encode_utf16()) }
}

/// Writes the shortest digits that parse to the number, in ECMAScript's layout. Of two equally near candidates, the
/// even one is written.
fn write_float(number: f64, out: &mut String) {
    if number == 0.0 {
        return out.push('0');
    }
    // No text parses to such a number, but code can build a tree with one.
    if !number.is_finite() {
        return out.push_str("null");
    }
    let text = serde_json::Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default();
    // Without an exponent, both layouts are the same except for a trailing `.0`. ECMAScript uses this form up to 10^21
    // and down to 10^-6.
    if text.len() <= 20 && !text.contains('e') && !text.trim_start_matches('-').starts_with("0.000000") {
        return out.push_str(text.strip_suffix(".0").unwrap_or(&text));
    }
    let (digits, point) = shortest(number.abs());
    if number < 0.0 {
        out.push('-');
    }
    let (count, places) = (digits.len(), usize::try_from(point).unwrap_or_default());
    match point {
        1..=21 if count <= places => {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', places - count));
        }
        1..=21 => {
            let (whole, part) = digits.split_at(places);
            out.extend([whole, ".", part]);
        }
        -5..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', usize::try_from(-point).unwrap_or_default()));
            out.push_str(&digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let sign = if point > 0 { '+' } else { '-' };
            out.extend([first, if rest.is_empty() { "" } else { "." }, rest, "e"]);
            // Writing to a `String` cannot fail.
            let _ = write!(out, "{sign}{}", (point - 1).unsigned_abs());
        }
    }
}

/// The digits without zeros at either end, and the number of digits before the decimal point.
// `serde_json` breaks ties to even as ECMAScript requires; the standard library's formatting does not.
fn shortest(number: f64) -> (String, i32) {
    let text = serde_json::Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let significant = digits.trim_start_matches('0');
    let leading = digits.len() - significant.len();
    let offset = |count: usize| i32::try_from(count).unwrap_or_default();
    let point = exponent.parse::<i32>().unwrap_or_default() + offset(whole.len()) - offset(leading);
    (significant.trim_end_matches('0').to_owned(), point)
}
