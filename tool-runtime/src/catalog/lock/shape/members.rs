//! Members of objects, items of arrays, and alternatives.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::catalog::lock::shape::view::View;
use crate::catalog::lock::shape::{Comparison, Shift, Use};

/// The schema of a place without one. Every value fits it.
static ANYTHING: Value = Value::Bool(true);

/// The maximum number of alternatives that are compared pairwise or searched.
const MAX_BRANCHES: usize = 64;

impl<'a> Comparison<'a, '_> {
    pub(super) fn members(&mut self, one: &View<'a>, other: &View<'a>) {
        let (before, after) = (properties(one), properties(other));
        let (must, must_now) = (required(one), required(other));
        let is_input = matches!(self.usage, Use::Input);
        let names: BTreeSet<_> = before.into_iter().chain(after).flat_map(Map::keys).map(String::as_str).collect();
        for name in names {
            let of = |members: Option<&'a Map<String, Value>>| members.and_then(|members| members.get(name));
            self.path.push(name);
            self.below(&["properties", name], |below| match (of(before), of(after)) {
                (Some(old), Some(new)) => {
                    below.was_required = must.contains(name);
                    below.schemas(old, new);
                    below.was_required = false;
                    match (must.contains(name), must_now.contains(name)) {
                        (true, false) => below.add(Shift::Wider, "it may be missing now"),
                        (false, true) => below.add(Shift::Narrower, "it is required now"),
                        _ => {}
                    }
                }
                (Some(_), None) => below.add(Shift::Removed, "it was removed"),
                (None, Some(_)) if is_input && must_now.contains(name) => {
                    below.add(Shift::Narrower, "it was added, and is required");
                }
                (None, _) => below.add(Shift::Added, "it was added, and may be left out"),
            });
            self.path.pop();
        }
        let known = |name: &&&str| ![before, after].iter().flatten().any(|members| members.contains_key(**name));
        for name in must_now.difference(&must).filter(known) {
            self.below(&["required"], |below| {
                below.add(Shift::Narrower, &format!("`{}` is required now", name.escape_debug()));
            });
        }
        for name in must.difference(&must_now).filter(known) {
            self.below(&["required"], |below| {
                below.add(Shift::Wider, &format!("`{}` may be missing now", name.escape_debug()));
            });
        }
        self.others(one, other, is_input);
    }

    /// Compares the rules for members that `properties` does not list.
    fn others(&mut self, one: &View<'a>, other: &View<'a>, is_input: bool) {
        let of = |view: &View<'a>| view.get("additionalProperties").unwrap_or(&ANYTHING);
        let (old, new) = (of(one), of(other));
        self.path.push("*");
        self.below(&["additionalProperties"], |below| match (old, new) {
            (Value::Bool(old), Value::Bool(new)) if old == new => {}
            (Value::Bool(_), Value::Bool(false)) if is_input => {
                below.add(Shift::Narrower, "arguments that are not listed are refused now");
            }
            (Value::Bool(_), Value::Bool(_)) if is_input => {
                below.add(Shift::Wider, "arguments that are not listed are accepted now");
            }
            // Readers of an output read only the members that are listed.
            (Value::Bool(_), Value::Bool(_)) => below.add(Shift::Same, "whether there are members that are not listed"),
            (old, new) => below.schemas(old, new),
        });
        self.path.pop();
    }

    pub(super) fn items(&mut self, one: &View<'a>, other: &View<'a>) {
        let of = |view: &View<'a>| view.get("items").unwrap_or(&ANYTHING);
        let (old, new) = (of(one), of(other));
        if !std::ptr::eq(old, new) {
            self.below(&["items"], |below| below.schemas(old, new));
        }
    }

    /// Whether the old schema is now one of several alternatives, or was one of them and is alone now. Adds this as one
    /// difference.
    pub(super) fn is_alternative(&mut self, one: &View<'a>, other: &View<'a>) -> bool {
        let (shift, message) = match (one.alternatives(), other.alternatives()) {
            (None, Some(now))
                if now.iter().take(MAX_BRANCHES).any(|now| self.has_rules_of(one, &View::of(self.roots.1, now))) =>
            {
                (Shift::Wider, "there are alternatives now")
            }
            (Some(before), None)
                if before
                    .iter()
                    .take(MAX_BRANCHES)
                    .any(|old| self.has_rules_of(&View::of(self.roots.0, old), other)) =>
            {
                (Shift::Narrower, "the other alternatives were removed")
            }
            _ => return false,
        };
        self.below(&["anyOf"], |below| below.add(shift, message));
        true
    }

    /// Whether two schemas have the same rules, regardless of their descriptions.
    fn has_rules_of(&mut self, one: &View<'a>, other: &View<'a>) -> bool {
        let rules = one.rules();
        let is_same =
            |rule: &str| matches!((one.get(rule), other.get(rule)), (Some(old), Some(new)) if self.same(old, new));
        !one.is_opaque
            && !other.is_opaque
            && one.has_null_of(other)
            && rules == other.rules()
            && rules.into_iter().all(is_same)
    }

    /// Compares alternatives in any order: equal ones are paired first, and the rest are compared with each other.
    pub(super) fn branches(&mut self, keyword: &str, one: &View<'a>, other: &View<'a>) {
        let of = |view: &View<'a>| view.get(keyword).and_then(Value::as_array);
        let is_all = keyword == "allOf";
        let (old, new) = match (of(one), of(other)) {
            (None, None) => return,
            (Some(old), Some(new)) => (old, new),
            (None, Some(_)) => return self.below(&[keyword], |below| below.add(Shift::Narrower, "it was added")),
            (Some(_), None) => return self.below(&[keyword], |below| below.add(Shift::Wider, "it was removed")),
        };
        let mut left: Vec<_> = old.iter().collect();
        let mut added = Vec::new();
        for (at, branch) in new.iter().enumerate() {
            let is_few = old.len().max(new.len()) <= MAX_BRANCHES;
            let equal = (0..left.len()).find(|place| match left.get(*place) {
                Some(old) if is_few || std::ptr::eq(*old, branch) => self.same(old, branch),
                _ => false,
            });
            match equal {
                Some(equal) => drop(left.remove(equal)),
                None => added.push((at, branch)),
            }
        }
        self.below(&[keyword], |below| match (left.len(), added.len()) {
            (0, 0) => {}
            (gone, now) if gone == now => {
                for (old, (at, new)) in left.into_iter().zip(added) {
                    below.below(&[&at.to_string()], |below| below.schemas(old, new));
                }
            }
            (0, _) => below.add(if is_all { Shift::Narrower } else { Shift::Wider }, "one was added"),
            (_, 0) => below.add(if is_all { Shift::Wider } else { Shift::Narrower }, "one was removed"),
            _ => below.add(Shift::Unknown, "several changed, and are not compared further"),
        });
    }
}

fn properties<'a>(view: &View<'a>) -> Option<&'a Map<String, Value>> {
    view.get("properties").and_then(Value::as_object)
}

fn required<'a>(view: &View<'a>) -> BTreeSet<&'a str> {
    view.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
