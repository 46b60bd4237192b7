//! Bounds, patterns and formats.

use std::cmp::Ordering;

use serde_json::Value;

use crate::catalog::lock::shape::view::{ARRAY, NUMBER, OBJECT, STRING, View};
use crate::catalog::lock::shape::{Comparison, Shift, between};

/// Least and most, with the keyword that excludes the bound, and the types that they are rules for.
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

/// A bound as a number, and whether it is excluded. A larger one is tighter.
type Bound = (Exact, bool);

impl<'a> Comparison<'a, '_> {
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
                // A format of numbers only describes the type; its bounds are keywords of their own.
                (old, new) if is_number(old) || is_number(new) => Shift::Text,
                (None, _) => Shift::Narrower,
                (_, None) => Shift::Wider,
                // Whether one pattern matches more texts than another is not computed.
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

/// The tighter of the bound and the excluded one. A minimum of zero bounds no length.
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

/// A number, exact where it is an integer.
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
