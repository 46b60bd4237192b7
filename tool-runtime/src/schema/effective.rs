//! [`Effective`]: a normal form of arguments. A call with an explicit default is the same call as one that leaves the
//! argument out.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::{Tree, canonical};
use crate::tool::Schema;

/// The published defaults of a tool's arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effective(Box<[(Box<str>, Value)]>);

impl Effective {
    /// Reads the defaults from an input schema. `read` runs only if the schema may have defaults.
    pub(crate) fn of<'s>(schema: &Schema, read: impl FnOnce() -> &'s Tree<'s>) -> Self {
        if !schema.as_str().contains("\"default\"") {
            return Self::default();
        }
        let properties = read().get("properties").and_then(Tree::as_object).into_iter().flatten();
        Self(properties.filter_map(|(name, one)| Some(((**name).into(), one.get("default")?.to_value()))).collect())
    }

    /// Returns the canonical text of the arguments with their defaults and without members that are `null`. `None` if
    /// the arguments have this form already.
    pub(crate) fn of_arguments(&self, arguments: &Tree<'_>) -> Option<String> {
        let mut missing = self.missing(arguments).peekable();
        if missing.peek().is_none() && !has_null(arguments) {
            return None;
        }
        let mut effective = without_nulls(arguments);
        if let Tree::Object(members) = &mut effective {
            members.extend(missing.map(|(name, default)| (Cow::Borrowed(name), Tree::from_value(default))));
        }
        Some(canonical::to_text(&effective))
    }

    /// Returns a hash that is equal for arguments with the same canonical text. It reads only the ends of strings and
    /// arrays, so it takes a tenth of the time of writing that text. If two hashes are equal, the texts have to be
    /// compared.
    pub(crate) fn fingerprint(&self, arguments: &Tree<'_>) -> u64 {
        let defaults = self.missing(arguments);
        let defaults = defaults.map(|(name, default)| member(name, fingerprint(&Tree::from_value(default))));
        defaults.fold(fingerprint(arguments), u64::wrapping_add)
    }

    /// Returns the defaults of arguments that are left out.
    fn missing<'e>(&'e self, arguments: &Tree<'_>) -> impl Iterator<Item = (&'e str, &'e Value)> {
        let left_out = |name: &str| arguments.get(name).is_none_or(Tree::is_null);
        let missing = self.0.iter().filter(move |(name, default)| left_out(name) && !default.is_null());
        missing.map(|(name, default)| (&**name, default))
    }
}

/// Hashes a value. Members are summed, so that their order makes no difference. Equal numbers have one hash, however
/// they are written.
#[expect(clippy::cast_precision_loss, reason = "equal numbers are equal floats")]
fn fingerprint(tree: &Tree<'_>) -> u64 {
    match tree {
        Tree::Null => 1,
        Tree::Bool(flag) => 2 + u64::from(*flag),
        Tree::Int(number) => mix(4, (*number as f64).to_bits()),
        Tree::UInt(number) => mix(4, (*number as f64).to_bits()),
        Tree::Float(number) => mix(4, number.to_bits()),
        Tree::String(text) => ends(text),
        Tree::Array(items) => match items.as_slice() {
            [] => 5,
            [one] => mix(6, fingerprint(one)),
            [first, .., last] => mix(mix(fingerprint(first), items.len() as u64), fingerprint(last)),
        },
        Tree::Object(members) => {
            let present = members.iter().filter(|(_, value)| !value.is_null());
            present.fold(7, |sum: u64, (name, value)| sum.wrapping_add(member(name, fingerprint(value))))
        }
    }
}

/// Rotates a member's value by the length of its name. Calls of one tool have the same names, so the lengths are
/// enough.
fn member(name: &str, value: u64) -> u64 {
    value.rotate_left(u32::try_from(name.len() % 64).unwrap_or_default())
}

/// Hashes the first eight bytes of a string, the last eight, and its length.
fn ends(text: &str) -> u64 {
    let bytes = text.as_bytes();
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => mix(u64::from_le_bytes(*first) ^ bytes.len() as u64, u64::from_le_bytes(*last)),
        _ => mix(bytes.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)), 8),
    }
}

/// Multiplies two words, and folds the product into one word.
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
fn mix(one: u64, other: u64) -> u64 {
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let product = u128::from(one ^ FACTORS[0]) * u128::from(other ^ FACTORS[1]);
    let [low, high] = [product as u64, (product >> 64) as u64];
    low ^ high
}

fn has_null(tree: &Tree<'_>) -> bool {
    match tree {
        Tree::Array(items) => items.iter().any(has_null),
        Tree::Object(members) => members.iter().any(|(_, value)| value.is_null() || has_null(value)),
        _ => false,
    }
}

fn without_nulls<'t>(tree: &'t Tree<'_>) -> Tree<'t> {
    match tree {
        Tree::Null => Tree::Null,
        Tree::Bool(flag) => Tree::Bool(*flag),
        Tree::Int(number) => Tree::Int(*number),
        Tree::UInt(number) => Tree::UInt(*number),
        Tree::Float(number) => Tree::Float(*number),
        Tree::String(text) => Tree::String(Cow::Borrowed(text)),
        Tree::Array(items) => Tree::Array(items.iter().map(without_nulls).collect()),
        Tree::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Tree::Object(kept.map(|(name, value)| (Cow::Borrowed(&**name), without_nulls(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Limits, parse};

    #[test]
    fn defaults_and_nulls_make_no_difference() {
        let schema = r#"{"properties":{"n":{"type":"integer"},"zone":{"default":"UTC"},"none":{"default":null}}}"#;
        let read = parse(schema, &Limits::UNBOUNDED).unwrap();
        let effective = Effective::of(&Schema::from_text(schema), || &read);
        let texts = |text: &str| {
            let tree = parse(text, &Limits::UNBOUNDED).unwrap();
            let effective_text = effective.of_arguments(&tree).unwrap_or_else(|| canonical::to_text(&tree));
            (effective_text, effective.fingerprint(&tree))
        };
        for same in [
            r#"{"n":1}"#,
            r#"{"zone":null,"n":1}"#,
            r#"{"n":1,"none":null,"zone":"UTC"}"#,
            r#"{"n":1,"zone":"UTC","text":null}"#,
        ] {
            assert_eq!(texts(same), texts(r#"{"n":1,"zone":"UTC"}"#), "{same}");
        }
        for other in [r#"{"n":2}"#, r#"{"n":1,"zone":"CET"}"#, r#"{"n":1,"none":""}"#] {
            let (one, another) = (texts(other), texts(r#"{"n":1}"#));
            assert!(one.0 != another.0 && one.1 != another.1, "{other}");
        }
    }
}
