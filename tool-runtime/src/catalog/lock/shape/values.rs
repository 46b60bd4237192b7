//! Types, lists of values, defaults and descriptive texts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::catalog::lock::shape::view::{ELSEWHERE, TEXTS, View};
use crate::catalog::lock::shape::{Comparison, RULES, Shift, WHOLE, between};
use crate::json::canonical;
use crate::text::plain;

impl<'a> Comparison<'a, '_> {
    /// Descriptive texts, defaults, and unknown keywords.
    pub(super) fn texts(&mut self, one: &View<'a>, other: &View<'a>, was_required: bool) {
        let known = |key: &&str| !(ELSEWHERE.contains(key) || WHOLE.contains(key) || RULES.contains(key));
        let keywords: BTreeSet<_> = one.keywords().chain(other.keywords()).filter(known).collect();
        for keyword in keywords {
            let (old, new) = (one.get(keyword), other.get(keyword));
            if old.map(canonical::to_text) != new.map(canonical::to_text) {
                let shift = if TEXTS.contains(&keyword) { Shift::Text } else { Shift::Foreign };
                self.below(&[keyword], |below| below.add(shift, &between(old, new)));
            }
        }
        let text = |default: Option<&Value>| default.filter(|value| !value.is_null()).map(canonical::to_text);
        let (old, new) = (one.get("default"), other.get("default"));
        if old != new {
            let shift = if text(old) == text(new) || was_required { Shift::Text } else { Shift::Default };
            self.below(&["default"], |below| below.add(shift, &between(old, new)));
        }
    }

    pub(super) fn types(&mut self, one: &View<'a>, other: &View<'a>) {
        let constants = (one.constants(), other.constants());
        let (old, new) = (one.types(), other.types());
        if let (Some(before), Some(after)) = &constants {
            let texts =
                |values: &[&Value]| values.iter().map(|value| canonical::to_text(*value)).collect::<BTreeSet<_>>();
            let (before, after) = (texts(before), texts(after));
            let gone: Vec<_> = before.difference(&after).collect();
            let added: Vec<_> = after.difference(&before).collect();
            let list = |verb: &str, values: &[&String]| {
                let shown: Vec<_> = values.iter().take(5).map(|value| plain(value, 40)).collect();
                let more = if values.len() > 5 { format!(" and {} more", values.len() - 5) } else { String::new() };
                format!("{verb} {}{more}", shown.join(", "))
            };
            let key = if other.get("const").is_some() { "const" } else { "enum" };
            self.below(&[key], |below| {
                if !gone.is_empty() {
                    below.add(Shift::Narrower, &list("without", &gone));
                }
                if !added.is_empty() {
                    below.add(Shift::Wider, &list("with", &added));
                }
            });
            return;
        }
        let shift = match (old & !new != 0, new & !old != 0) {
            (true, true) => Some(Shift::Other),
            (true, false) => Some(Shift::Narrower),
            (false, true) => Some(Shift::Wider),
            (false, false) => None,
        };
        if let Some(shift) = shift {
            let message = format!("{} -> {}", one.type_text(), other.type_text());
            self.below(&["type"], |below| below.add(shift, &message));
        }
        let shift = match constants {
            (None, Some(_)) => Shift::Narrower,
            (Some(_), None) => Shift::Wider,
            _ => return,
        };
        let message = between(one.get("enum").or(one.get("const")), other.get("enum").or(other.get("const")));
        self.below(&["enum"], |below| below.add(shift, &message));
    }
}
