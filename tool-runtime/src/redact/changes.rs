//! What changed between two readings of a call's arguments, masked.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::call::ArgumentChange;
use crate::json::{self, Limits, Tree};
use crate::redact::mask::MASK;
use crate::text::pointer;

/// The most changes that are listed.
const MOST: usize = 64;

/// Lists where two JSON objects differ, in the order of the second. A member that is `null` counts as left out.
pub(crate) fn changes(before: &str, after: &str, sensitive: &[String]) -> Vec<ArgumentChange> {
    let mut found = Vec::new();
    if let (Ok(before), Ok(after)) = (json::parse(before, &Limits::UNBOUNDED), json::parse(after, &Limits::UNBOUNDED)) {
        members(&before, &after, "", sensitive, &mut found);
    }
    found.truncate(MOST);
    found
}

fn members(before: &Tree<'_>, after: &Tree<'_>, at: &str, sensitive: &[String], found: &mut Vec<ArgumentChange>) {
    let (Tree::Object(old), Tree::Object(new)) = (before, after) else {
        return values(Some(before), Some(after), at, found);
    };
    let names = new.iter().map(|(name, _)| name);
    let gone = old.iter().map(|(name, _)| name).filter(|name| after.get(name).is_none());
    for name in names.chain(gone).take(MOST) {
        let mut place = at.to_owned();
        pointer::push(&mut place, name);
        let (old, new) = (before.get(name).filter(|one| !one.is_null()), after.get(name).filter(|one| !one.is_null()));
        if sensitive.iter().any(|one| **one == **name) {
            if old.map(shown) != new.map(shown) {
                let masked = |value: Option<&Tree<'_>>| value.map(|_| raw(&MASK));
                found.push(ArgumentChange::new(place, masked(old), masked(new)));
            }
        } else {
            match (old, new) {
                // Only the members of the whole document can be sensitive.
                (Some(old @ Tree::Object(_)), Some(new @ Tree::Object(_))) => members(old, new, &place, &[], found),
                (old, new) => values(old, new, &place, found),
            }
        }
    }
}

fn values(old: Option<&Tree<'_>>, new: Option<&Tree<'_>>, at: &str, found: &mut Vec<ArgumentChange>) {
    if old.map(shown) != new.map(shown) {
        found.push(ArgumentChange::new(at.to_owned(), old.map(raw), new.map(raw)));
    }
}

fn shown(value: &Tree<'_>) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn raw(value: &impl serde::Serialize) -> Arc<RawValue> {
    serde_json::value::to_raw_value(value).map_or_else(|_| RawValue::NULL.to_owned().into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::changes;

    #[test]
    fn places_are_named_and_sensitive_values_are_masked() {
        let of = |before: &str, after: &str| {
            let found = changes(before, after, &["key".to_owned()]);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(of(r#"{"a":1,"b":null}"#, r#"{"a":1}"#).is_empty());
        assert_eq!(of(r#"{"a":1}"#, r#"{"a":1,"b":2}"#), ["/b: (left out) -> 2"]);
        assert_eq!(
            of(r#"{"a":{"x/y":[1]},"c":3}"#, r#"{"a":{"x/y":[1,2]}}"#),
            ["/a/x~1y: [1] -> [1,2]", "/c: 3 -> (left out)"]
        );
        assert_eq!(of(r#"{"key":"s1"}"#, r#"{"key":"s2"}"#), [r#"/key: "[sensitive]" -> "[sensitive]""#]);
        assert!(of(r#"{"key":"s1"}"#, r#"{"key":"s1"}"#).is_empty());
        assert!(of("{", "{}").is_empty());
    }
}
