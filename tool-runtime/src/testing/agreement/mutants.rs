//! Mutants: values that each break one rule of their schema, with the place of the change.

use serde_json::{Map, Value, json};

use crate::testing::agreement::merged::merged;
use crate::text::pointer;

/// A value with one change.
pub(super) struct Mutant {
    /// The place at which the schema must report a violation.
    pub(super) pointer: String,
    /// The change, in words.
    pub(super) what: String,
    /// Whether a parser must refuse the change, too, such as a wrong type, a missing member or a fraction. Only the
    /// schema checks bounds.
    pub(super) is_structural: bool,
    pub(super) value: Value,
}

/// The maximum number of parts of all mutants of one value together. An object of a thousand members has five thousand
/// mutants with a thousand members each.
const MAX_PARTS: usize = 100_000;

/// Passes the mutants of a value to `each`. If there are too many, it passes only every n-th one; `phase` shifts the
/// selection.
pub(super) fn mutants(schema: &Value, value: &Value, phase: usize, each: &mut dyn FnMut(&Mutant)) {
    let mut count = 0_usize;
    changes(schema, value, &mut |_, _, _, _| count += 1);
    let stride = count.saturating_mul(parts(value)).div_ceil(MAX_PARTS).max(1);
    let mut number = phase;
    changes(schema, value, &mut |at, what, is_structural, part| {
        if number.is_multiple_of(stride) {
            each(&Mutant { pointer: at.to_owned(), what, is_structural, value: with(value, at, part()) });
        }
        number += 1;
    });
}

/// The number of scalars, arrays and objects in a value.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(parts).sum::<usize>() + 1,
        Value::Object(members) => members.values().map(parts).sum::<usize>() + 1,
        _ => 1,
    }
}

/// A callback with the pointer of a change, its description, whether a parser must refuse it, and the replacement.
type Changed<'a> = dyn FnMut(&str, String, bool, &dyn Fn() -> Value) + 'a;

fn changes(schema: &Value, value: &Value, each: &mut Changed<'_>) {
    visit(schema, schema, value, &mut String::new(), &mut |at, schema, part| {
        let mut add = |what: String, is_structural: bool, part: &dyn Fn() -> Value| each(at, what, is_structural, part);
        of_type(schema, part, &mut add);
        match part {
            Value::Object(members) => of_object(schema, members, &mut add),
            Value::Array(items) => of_array(schema, items, &mut add),
            Value::String(text) => of_text(schema, text, &mut add),
            Value::Number(_) => of_number(schema, &mut add),
            Value::Null | Value::Bool(_) => {}
        }
    });
}

type Add<'a> = dyn FnMut(String, bool, &dyn Fn() -> Value) + 'a;

fn of_type(schema: &Map<String, Value>, part: &Value, add: &mut Add<'_>) {
    let types = types(schema);
    if types.is_empty() {
        return;
    }
    // `null` is not tried: the parser of an optional argument accepts it even if the schema does not.
    let others = [
        ("boolean", json!(true)),
        ("integer", json!(1)),
        ("string", json!("text")),
        ("array", json!([])),
        ("object", json!({})),
    ];
    for (name, other) in others {
        let is_allowed = types.contains(&name) || name == "integer" && types.contains(&"number");
        if !is_allowed && kind(part) != name {
            add(format!("{name} where {} is wanted", types.join(" or ")), true, &|| other.clone());
        }
    }
    if types.contains(&"integer") && !types.contains(&"number") && part.is_number() {
        add("a number with a fraction where integer is wanted".to_owned(), true, &|| json!(0.5));
    }
}

fn of_object(schema: &Map<String, Value>, members: &Map<String, Value>, add: &mut Add<'_>) {
    for name in required(schema).filter(|name| members.contains_key(*name)) {
        add(format!("an object without `{name}`, which is required"), true, &|| {
            let mut without = members.clone();
            without.remove(name);
            Value::Object(without)
        });
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) && !schema.contains_key("patternProperties") {
        add("an unknown member".to_owned(), false, &|| {
            let mut more = members.clone();
            more.insert("_no_such_member".to_owned(), Value::Null);
            Value::Object(more)
        });
    }
}

fn of_array(schema: &Map<String, Value>, items: &[Value], add: &mut Add<'_>) {
    if let Some(first) = items.first() {
        let most = schema.get("maxItems").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
        if let Some(most) = most.filter(|most| *most < 1_000) {
            add(format!("more than {most} items"), false, &|| Value::Array(vec![first.clone(); most + 1]));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            add("an item twice".to_owned(), false, &|| Value::Array(vec![first.clone(); 2]));
        }
    }
    if let Some(least) = schema.get("minItems").and_then(Value::as_u64).filter(|least| *least > 0) {
        let fewer = usize::try_from(least).unwrap_or(usize::MAX) - 1;
        add(format!("fewer than {least} items"), false, &|| items.iter().take(fewer).cloned().collect());
    }
}

fn of_text(schema: &Map<String, Value>, text: &str, add: &mut Add<'_>) {
    if let Some(Value::Array(listed)) = schema.get("enum") {
        let other = format!("{text}_");
        if !listed.contains(&Value::from(&*other)) {
            add("a text that is not listed".to_owned(), true, &|| other.as_str().into());
        }
        return;
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    if let Some(least) = bound("minLength").filter(|least| *least > 0) {
        add(format!("fewer than {least} characters"), false, &|| {
            text.chars().take(least - 1).collect::<String>().into()
        });
    }
    if let Some(most) = bound("maxLength").filter(|most| *most < 100_000) {
        add(format!("more than {most} characters"), false, &|| {
            text.chars().chain(std::iter::repeat('a')).take(most + 1).collect::<String>().into()
        });
    }
}

fn of_number(schema: &Map<String, Value>, add: &mut Add<'_>) {
    // A bound at the end of the 64-bit range has no number beyond it.
    let beyond = |name: &str, step: i64| {
        let bound = schema.get(name)?;
        match (bound.as_i64(), step) {
            (Some(whole), _) => whole.checked_add(step).map(Value::from),
            (None, 0) => Some(bound.clone()),
            (None, _) => {
                let further = |bound: f64| bound.abs().max(1.0).copysign(if step < 0 { -1.0 } else { 1.0 });
                bound.as_f64().map(|bound| json!(bound + further(bound)))
            }
        }
    };
    for (name, step) in [("minimum", -1), ("exclusiveMinimum", 0), ("maximum", 1), ("exclusiveMaximum", 0)] {
        if let Some(value) = beyond(name, step).filter(|value| value.as_f64().is_some_and(f64::is_finite)) {
            add(format!("a number beyond `{name}`"), false, &|| value.clone());
        }
    }
}

/// Reports each member that may be absent although the schema publishes no default, so that a model cannot know its
/// value. Members that may be `null` are exempt, and so are maps whose keys are an enum, which have no defaults.
pub(super) fn hidden_defaults(
    schema: &Value,
    value: &Value,
    is_struct: impl Fn(&str) -> bool,
    parses: impl Fn(&Value) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    visit(schema, schema, value, &mut String::new(), &mut |at, schema, part| {
        let (Some(Value::Object(properties)), Value::Object(members)) = (schema.get("properties"), part) else {
            return;
        };
        let required: Vec<_> = required(schema).collect();
        if required.is_empty() && !is_struct(at) {
            return;
        }
        for (name, property) in properties {
            let is_stated = property.get("default").is_some() || types_of(property).contains(&"null");
            if is_stated || required.contains(&name.as_str()) {
                continue;
            }
            let mut null = members.clone();
            null.insert(name.clone(), Value::Null);
            let mut without = members.clone();
            without.remove(name);
            let (null, without) = (with(value, at, Value::Object(null)), with(value, at, Value::Object(without)));
            if !parses(&null) && parses(&without) {
                let mut place = at.to_owned();
                pointer::push(&mut place, name);
                found.push(format!("{place}: it may be left out, and the schema publishes no default"));
            }
        }
    });
    found
}

/// Returns the schema of the value at a pointer into a value of `schema`.
pub(super) fn described(schema: &Value, at: &str) -> Option<Map<String, Value>> {
    let mut here = merged(schema, schema)?.into_owned();
    for segment in pointer::split(at)? {
        let next = here.get("properties").and_then(|properties| properties.get(&*segment));
        let next = next.or_else(|| here.get("additionalProperties").filter(|more| more.is_object()));
        here = merged(schema, next.or_else(|| here.get("items"))?)?.into_owned();
    }
    Some(here)
}

type Each<'a> = dyn FnMut(&str, &Map<String, Value>, &Value) + 'a;

/// Visits every part of a value with its schema.
fn visit(root: &Value, schema: &Value, value: &Value, at: &mut String, each: &mut Each<'_>) {
    let Some(schema) = merged(root, schema) else { return };
    each(at, &schema, value);
    let before = at.len();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let own = schema.get("properties").and_then(|properties| properties.get(name));
                let Some(inner) = own.or_else(|| schema.get("additionalProperties")) else { continue };
                pointer::push(at, name);
                visit(root, inner, member, at, each);
                at.truncate(before);
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate().take(3) {
                pointer::push(at, &index.to_string());
                visit(root, inner, item, at, each);
                at.truncate(before);
            }
        }
        _ => {}
    }
}

pub(super) fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn types_of(schema: &Value) -> Vec<&str> {
    schema.as_object().map(types).unwrap_or_default()
}

pub(super) fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with(value: &Value, at: &str, part: Value) -> Value {
    let mut value = value.clone();
    match value.pointer_mut(at) {
        Some(place) => {
            *place = part;
            value
        }
        None => part,
    }
}
