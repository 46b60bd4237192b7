//! Compares types, lists of values, bounds, patterns, formats, defaults and descriptive texts.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::catalog::lock::shape::view::{ARRAY, ELSEWHERE, NUMBER, OBJECT, STRING, TEXTS, View};
use crate::catalog::lock::shape::{Comparison, RULES, Shift, WHOLE, between};
use crate::json::canonical;
use crate::text::plain;

/// The keywords of bounds: the inclusive keyword, the exclusive one if there is one, whether it is a lower bound, and
/// the types that it applies to.
const BOUNDS: [(&str, &str, bool, u8); 8] = [
    ("minimum", "exclusiveMinimum", true, NUMBER),
    ("maximum", "exclusiveMaximum", false, NUMBER),
    ("minLength", "", true, STRING),
    ("maxLength", "", false, STRING),
    ("minItems", "", true, ARRAY),
    ("maxItems", "", false, ARRAY),
    ("minProperties", "", true, OBJECT),
    ("maxProperties", "", false, OBJECT),
];

/// A bound as a number (negated if it is an upper bound), and whether the number itself is excluded. The larger of two
/// bounds is tighter.
type Bound = (Exact, bool);

impl<'a> Comparison<'a, '_> {
    /// Compares descriptive texts, defaults and unknown keywords.
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

    pub(super) fn bounds(&mut self, one: &View<'a>, other: &View<'a>) {
        let types = one.types() | other.types();
        for (keyword, excluding, is_least, of) in BOUNDS {
            if types & of == 0 {
                continue;
            }
            let bound = |view: &View<'a>| bound(view, keyword, excluding, is_least);
            let shift = match (bound(one), bound(other)) {
                (None, None) => continue,
                (None, Some(_)) => Shift::Narrower,
                (Some(_), None) => Shift::Wider,
                (Some(old), Some(new)) => match tighter(&new, &old) {
                    Ordering::Greater => Shift::Narrower,
                    Ordering::Less => Shift::Wider,
                    Ordering::Equal => continue,
                },
            };
            let written = |view: &View<'a>| view.get(keyword).or_else(|| view.get(excluding));
            let message = between(written(one), written(other));
            self.below(&[keyword], |below| below.add(shift, &message));
        }
        self.multiples(one, other);
        let is_unique = |view: &View<'a>| view.get("uniqueItems") == Some(&Value::Bool(true));
        match (is_unique(one), is_unique(other)) {
            (false, true) => self.below(&["uniqueItems"], |below| below.add(Shift::Narrower, "false -> true")),
            (true, false) => self.below(&["uniqueItems"], |below| below.add(Shift::Wider, "true -> false")),
            _ => {}
        }
        for keyword in ["pattern", "format"] {
            let (old, new) = (one.get(keyword), other.get(keyword));
            let is_number = |value: Option<&Value>| {
                value.and_then(Value::as_str).is_some_and(|name| {
                    matches!(name, "float" | "double") || name.trim_start_matches('u').starts_with("int")
                })
            };
            let shift = match (old, new) {
                (old, new) if old == new => continue,
                // A format of numbers only describes the type; its bounds are separate keywords.
                (old, new) if is_number(old) || is_number(new) => Shift::Text,
                (None, _) => Shift::Narrower,
                (_, None) => Shift::Wider,
                // Two patterns are not compared further.
                _ if keyword == "pattern" => Shift::Unknown,
                _ => Shift::Other,
            };
            self.below(&[keyword], |below| below.add(shift, &between(old, new)));
        }
    }

    fn multiples(&mut self, one: &View<'a>, other: &View<'a>) {
        let (old, new) = (one.get("multipleOf"), other.get("multipleOf"));
        let number = |value: Option<&Value>| value.and_then(Value::as_f64).filter(|number| *number > 0.0);
        let divides = |one: f64, other: f64| (other / one).fract() == 0.0;
        let shift = match (number(old), number(new)) {
            _ if old == new => return,
            (None, _) => Shift::Narrower,
            (_, None) => Shift::Wider,
            (Some(old), Some(new)) if divides(old, new) && divides(new, old) => return,
            (Some(old), Some(new)) if divides(old, new) => Shift::Narrower,
            (Some(old), Some(new)) if divides(new, old) => Shift::Wider,
            _ => Shift::Other,
        };
        self.below(&["multipleOf"], |below| below.add(shift, &between(old, new)));
    }
}

/// Returns the tighter one of the inclusive and the exclusive bound. `None` without a bound, and for a `minLength`,
/// `minItems` or `minProperties` of zero, which excludes nothing.
fn bound(view: &View<'_>, keyword: &str, excluding: &str, is_least: bool) -> Option<Bound> {
    // Upper bounds are negated, so that the larger number is the tighter bound in both directions.
    let sign = |exact: Exact| if is_least { exact } else { exact.negated() };
    let read = |keyword: &str| view.get(keyword).and_then(Exact::of).map(sign);
    let excluded = read(excluding).map(|exact| match exact {
        // For integers, above 0 means 1 or more.
        Exact::Integer(number) if view.is_integer() => (Exact::Integer(number.saturating_add(1)), false),
        exact => (exact, true),
    });
    let found = read(keyword).map(|exact| (exact, false)).into_iter().chain(excluded);
    let tightest = found.max_by(tighter)?;
    let is_length = excluding.is_empty() && is_least;
    (!(is_length && tightest.0.compare(&Exact::Integer(0)) != Ordering::Greater)).then_some(tightest)
}

fn tighter(one: &Bound, other: &Bound) -> Ordering {
    one.0.compare(&other.0).then(one.1.cmp(&other.1))
}

/// A number of a schema. Integers are exact.
#[derive(Clone, Copy)]
enum Exact {
    Integer(i128),
    Float(f64),
}

impl Exact {
    fn of(value: &Value) -> Option<Self> {
        let number = value.as_number()?;
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        integer.map(Self::Integer).or_else(|| number.as_f64().map(Self::Float))
    }

    fn negated(self) -> Self {
        match self {
            Self::Integer(number) => Self::Integer(-number),
            Self::Float(number) => Self::Float(-number),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a bound that is written as a float is one already")]
    fn compare(&self, other: &Self) -> Ordering {
        let float = |exact: &Self| match exact {
            Self::Integer(number) => *number as f64,
            Self::Float(number) => *number,
        };
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            (one, other) => float(one).total_cmp(&float(other)),
        }
    }
}
