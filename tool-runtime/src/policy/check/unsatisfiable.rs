//! Finds conditions that no value of an argument can meet, and values in `one_of` that the argument can never have. A
//! rule with such a condition is a mistake.

use serde_json::Value;

use crate::policy::argument_rule::{Condition, RuleValue};
use crate::policy::decimal::Decimal;
use crate::schema;
use crate::text::nearest;

/// The message about a condition that never holds, and the nearest value that the argument can have.
pub(super) struct Unsatisfiable {
    pub(super) message: String,
    pub(super) nearest: Option<String>,
}

/// Returns the reason why no value of an argument, or no item of an array, can meet a condition. For `one_of`, one
/// value that the schema excludes is enough. `None` if the schema allows the values, or if that is unknown. `document`
/// is the whole input schema, `argument` the part for the argument.
pub(super) fn of(condition: &Condition, document: &Value, argument: &Value) -> Option<Unsatisfiable> {
    let items = argument.get("items").filter(|_| types(argument).any(|name| name == "array"));
    let argument = items.map_or(argument, |items| target(document, items));
    let named: Vec<&str> = types(argument).filter(|name| *name != "null").collect();
    let can_be = |wanted: &[&str]| named.is_empty() || named.iter().any(|name| wanted.contains(name));
    let (key, fits) = match condition {
        Condition::Prefix(_) => ("prefix", can_be(&["string"])),
        Condition::AtMost(_) => ("at_most", can_be(&["number", "integer"]) || is_decimal_text(document, argument)),
        Condition::Equals(value) => ("equals", can_be(types_of(value))),
        Condition::OneOf(values) => ("one_of", values.iter().all(|value| can_be(types_of(value)))),
    };
    if !fits {
        let named = named.join("`, `");
        let message = format!("`{key}` compares with another type than the argument, which is `{named}`");
        return Some(Unsatisfiable { message, nearest: None });
    }
    let never = |value: &&RuleValue| {
        let value = serde_json::to_value(value);
        value.is_ok_and(|value| schema::takes(document, argument, &value) == Some(false))
    };
    let choices = choices(argument);
    let unknown = match condition {
        Condition::Equals(value) => Some(value).filter(never),
        Condition::OneOf(values) => values.iter().find(never),
        Condition::Prefix(prefix) => {
            let known = choices.is_empty() || choices.iter().any(|choice| choice.starts_with(prefix.as_str()));
            return (!known).then(|| unsatisfiable(key, &choices, Some(prefix)));
        }
        // The bounds of a schema apply to numbers only; a numeric string may be below them.
        Condition::AtMost(_) if named.contains(&"string") => None,
        Condition::AtMost(limit) => {
            let bound = |key: &str| {
                let bound = argument.get(key).filter(|bound| bound.is_number())?.to_string();
                Decimal::parse(&bound).map(|value| (bound, value))
            };
            let least = bound("minimum").filter(|(_, least)| *least > limit.value);
            let least = least.map(|(written, _)| format!("at least {written}"));
            let beyond = bound("exclusiveMinimum").filter(|(_, least)| *least >= limit.value);
            let least = least.or_else(|| beyond.map(|(written, _)| format!("more than {written}")))?;
            let message = format!("`at_most` is below every value of the argument, which is {least}");
            return Some(Unsatisfiable { message, nearest: None });
        }
    };
    unknown.map(|value| {
        let text = if let RuleValue::Text(text) = value { Some(text.as_str()) } else { None };
        unsatisfiable(key, &choices, text)
    })
}

/// Whether the schema of an argument accepts decimal numbers as strings, but not any string.
fn is_decimal_text(document: &Value, argument: &Value) -> bool {
    let takes = |text: &str| schema::takes(document, argument, &text.into()) == Some(true);
    ["0", "1", "0.5", "1.00", "-1"].into_iter().any(takes) && !takes("x") && !takes("")
}

fn unsatisfiable(key: &str, choices: &[&str], written: Option<&str>) -> Unsatisfiable {
    let message = match choices {
        [] => format!("`{key}` names a value that the argument can never have; see its schema"),
        choices => {
            format!("`{key}` names a value that the argument can never have; write one of `{}`", choices.join("`, `"))
        }
    };
    Unsatisfiable {
        message,
        nearest: written.and_then(|text| nearest(text, choices.iter().copied())).map(str::to_owned),
    }
}

/// Follows a reference inside the document. Returns the schema itself if it is not a reference or does not resolve.
pub(in crate::policy) fn target<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    // A chain of more than eight references is not followed to its end, because it may be a cycle.
    for _ in 0..8 {
        let place = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
        let Some(next) = place.and_then(|place| document.pointer(place)) else { break };
        schema = next;
    }
    schema
}

/// Returns the strings in the `enum` or `const` of a schema.
fn choices(schema: &Value) -> Vec<&str> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Value::as_str).collect()
}

/// Returns the types that a schema names.
pub(in crate::policy) fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let named = schema.get("type");
    let list = named.and_then(Value::as_array).into_iter().flatten();
    named.into_iter().chain(list).filter_map(Value::as_str)
}

/// Returns the names of a value's type in JSON Schema.
const fn types_of(value: &RuleValue) -> &'static [&'static str] {
    match value {
        RuleValue::Bool(_) => &["boolean"],
        RuleValue::Int(_) | RuleValue::UInt(_) | RuleValue::Float(_) => &["number", "integer"],
        RuleValue::Text(_) => &["string"],
    }
}
