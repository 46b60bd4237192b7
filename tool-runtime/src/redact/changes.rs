//! Lists the differences between two versions of a call's arguments. Sensitive values are masked.

use crate::call::{ArgumentChange, ArgumentChangeKind, JsonText};
use crate::json::{self, Limits, Tree};
use crate::redact::mask::MASK;
use crate::text::pointer;

/// The maximum number of changes that are listed.
const MAX_CHANGES: usize = 64;

/// The maximum number of characters that are shown of a repaired text.
const PIECE: usize = 200;

/// The number of unchanged characters that are shown on each side of a repair.
const AROUND: usize = 16;

/// Lists at most 64 differences between two JSON objects, in the order of the second. Members that only the first has
/// come last. A member that is `null` is treated as absent.
pub(crate) fn changes(
    kind: ArgumentChangeKind,
    before: &str,
    after: &str,
    sensitive: &[String],
) -> Vec<ArgumentChange> {
    let mut found = Vec::new();
    if let (Ok(before), Ok(after)) = (json::parse(before, &Limits::UNBOUNDED), json::parse(after, &Limits::UNBOUNDED)) {
        Search { kind, found: &mut found }.members(&before, &after, "", sensitive);
    }
    found.truncate(MAX_CHANGES);
    found
}

struct Search<'f> {
    kind: ArgumentChangeKind,
    found: &'f mut Vec<ArgumentChange>,
}

impl Search<'_> {
    fn members(&mut self, before: &Tree<'_>, after: &Tree<'_>, at: &str, sensitive: &[String]) {
        let (Tree::Object(old), Tree::Object(new)) = (before, after) else {
            return self.values(Some(before), Some(after), at);
        };
        let names = new.iter().map(|(name, _)| name);
        let gone = old.iter().map(|(name, _)| name).filter(|name| after.get(name).is_none());
        for name in names.chain(gone) {
            if self.found.len() >= MAX_CHANGES {
                return;
            }
            let mut place = at.to_owned();
            pointer::push(&mut place, name);
            let present = |tree: &Tree<'_>| !tree.is_null();
            let (old, new) = (before.get(name).filter(|one| present(one)), after.get(name).filter(|one| present(one)));
            if sensitive.iter().any(|one| **one == **name) {
                if old.map(shown) != new.map(shown) {
                    let masked = |value: Option<&Tree<'_>>| value.map(|_| raw(&MASK));
                    self.found.push(ArgumentChange::new(self.kind, place, masked(old), masked(new)));
                }
            } else {
                match (old, new) {
                    // Only top-level members can be sensitive, so the list is empty here.
                    (Some(old @ Tree::Object(_)), Some(new @ Tree::Object(_))) => self.members(old, new, &place, &[]),
                    (old, new) => self.values(old, new, &place),
                }
            }
        }
    }

    fn values(&mut self, old: Option<&Tree<'_>>, new: Option<&Tree<'_>>, at: &str) {
        if old.map(shown) != new.map(shown) {
            self.found.push(ArgumentChange::new(self.kind, at.to_owned(), old.map(raw), new.map(raw)));
        }
    }
}

/// Returns the change of a repairer: the piece of the text that differs, with a few characters around it. For a tool
/// with sensitive arguments, no text is shown, because any piece of a text that cannot be parsed may be sensitive.
pub(crate) fn repaired(before: &str, after: &str, sensitive: &[String]) -> ArgumentChange {
    let change = |before, after| ArgumentChange::new(ArgumentChangeKind::Repaired, String::new(), before, after);
    if !sensitive.is_empty() {
        return change(None, None);
    }
    let same = |(one, other): &(char, char)| one == other;
    let start: usize = before.chars().zip(after.chars()).take_while(same).count();
    let shorter = before.chars().count().min(after.chars().count()) - start;
    let end = before.chars().rev().zip(after.chars().rev()).take_while(same).count().min(shorter);
    let piece = |text: &str| {
        let skipped = start.saturating_sub(AROUND);
        let kept = (text.chars().count() - skipped).saturating_sub(end.saturating_sub(AROUND));
        let shown: String = text.chars().skip(skipped).take(kept.min(PIECE)).collect();
        let (left, right) = (skipped > 0, skipped + kept.min(PIECE) < text.chars().count());
        Some(raw(&format!("{}{shown}{}", if left { "…" } else { "" }, if right { "…" } else { "" })))
    };
    change(piece(before), piece(after))
}

fn shown(value: &Tree<'_>) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn raw(value: &impl serde::Serialize) -> JsonText {
    serde_json::value::to_raw_value(value).map_or_else(|_| JsonText::null(), JsonText::from)
}

#[cfg(test)]
mod tests {
    use super::{changes, repaired};
    use crate::call::ArgumentChangeKind;

    #[test]
    fn places_are_named_and_sensitive_values_are_masked() {
        let of = |before: &str, after: &str| {
            let found = changes(ArgumentChangeKind::Edited, before, after, &["key".to_owned()]);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(of(r#"{"a":1,"b":null}"#, r#"{"a":1}"#).is_empty());
        assert_eq!(of(r#"{"a":1}"#, r#"{"a":1,"b":2}"#), ["edited /b: (left out) -> 2"]);
        assert_eq!(
            of(r#"{"a":{"x/y":[1]},"c":3}"#, r#"{"a":{"x/y":[1,2]}}"#),
            ["edited /a/x~1y: [1] -> [1,2]", "edited /c: 3 -> (left out)"]
        );
        assert_eq!(of(r#"{"key":"s1"}"#, r#"{"key":"s2"}"#), [r#"edited /key: "[sensitive]" -> "[sensitive]""#]);
        assert!(of(r#"{"key":"s1"}"#, r#"{"key":"s1"}"#).is_empty());
        assert!(of("{", "{}").is_empty());
    }

    #[test]
    fn a_repair_shows_what_differs() {
        let of = |before: &str, after: &str| repaired(before, after, &[]).to_string();
        assert_eq!(of(r#"{"a":1,}"#, r#"{"a":1}"#), r#"repaired: "{\"a\":1,}" -> "{\"a\":1}""#);
        let (before, after) =
            (format!("{{\"a\":\"{}\",}}", "x".repeat(99)), format!("{{\"a\":\"{}\"}}", "x".repeat(99)));
        assert_eq!(of(&before, &after), r#"repaired: "…xxxxxxxxxxxxxxx\",}" -> "…xxxxxxxxxxxxxxx\"}""#);
        assert_eq!(of("å", ""), r#"repaired: "å" -> """#);
        assert_eq!(of("aaa", "aa"), r#"repaired: "aaa" -> "aa""#);
        assert!(of(&"x".repeat(9999), "{}").len() < 300);
        let hidden = repaired("{'key':'s1'}", r#"{"key":"s1"}"#, &["key".to_owned()]);
        assert_eq!(hidden.to_string(), "repaired (the text is not shown)");
    }
}
