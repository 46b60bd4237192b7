//! Merges a schema with its references and its `allOf` into one, for values that obey all of its parts.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The maximum nesting of references and `allOf`s.
const MAX_DEPTH: usize = 64;

/// Keywords that do not affect which values are valid.
const IRRELEVANT: [&str; 12] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Returns one schema in place of a reference, the keywords next to it, and `allOf`. `None` for a boolean schema, and
/// for a reference that is not a pointer to a schema of the document.
///
/// If two parts have the same keyword and no single value expresses both, the first is kept. The caller validates the
/// generated values against the original schema.
pub(super) fn merged<'a>(root: &'a Value, schema: &'a Value) -> Option<Cow<'a, Map<String, Value>>> {
    within(root, schema, MAX_DEPTH)
}

fn within<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Option<Cow<'a, Map<String, Value>>> {
    let schema = schema.as_object()?;
    let depth = depth.checked_sub(1)?;
    let mut parts = Vec::new();
    if let Some(reference) = schema.get("$ref") {
        let target = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        let own = schema.keys().any(|key| key != "$ref" && !IRRELEVANT.contains(&&**key));
        if !own {
            return within(root, target, depth);
        }
        parts.push(target);
    }
    if let Some(Value::Array(all)) = schema.get("allOf") {
        parts.extend(all.iter().filter(|part| **part != Value::Bool(true)));
    }
    if parts.is_empty() {
        return Some(Cow::Borrowed(schema));
    }
    let mut whole = schema.clone();
    whole.remove("$ref");
    whole.remove("allOf");
    for part in parts {
        for (key, value) in within(root, part, depth)?.iter().filter(|(key, _)| !IRRELEVANT.contains(&&***key)) {
            let both = match whole.get(key) {
                Some(own) => both(key, own, value),
                None => value.clone(),
            };
            whole.insert(key.clone(), both);
        }
    }
    Some(Cow::Owned(whole))
}

/// Returns one value of a keyword that has the effect of two.
fn both(key: &str, one: &Value, other: &Value) -> Value {
    let larger = |one: &Value, other: &Value| if one.as_f64() < other.as_f64() { other.clone() } else { one.clone() };
    let smaller = |one: &Value, other: &Value| if other.as_f64() < one.as_f64() { other.clone() } else { one.clone() };
    match (key, one, other) {
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", ..) => larger(one, other),
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", ..) => smaller(one, other),
        ("required", Value::Array(one), Value::Array(other)) => {
            one.iter().chain(other.iter().filter(|name| !one.contains(name))).cloned().collect()
        }
        ("enum", Value::Array(one), Value::Array(other)) => {
            one.iter().filter(|value| other.contains(value)).cloned().collect()
        }
        ("properties", Value::Object(one), Value::Object(other)) => {
            let mut all = one.clone();
            for (name, schema) in other {
                let schema = match one.get(name) {
                    Some(own) => json!({ "allOf": [own, schema] }),
                    None => schema.clone(),
                };
                all.insert(name.clone(), schema);
            }
            Value::Object(all)
        }
        ("type", ..) => {
            let listed = |types: &Value| match types {
                Value::Array(types) => types.clone(),
                one => vec![one.clone()],
            };
            let (one, other) = (listed(one), listed(other));
            let takes = |types: &[Value], name: &Value| {
                types.contains(name) || *name == "integer" && types.iter().any(|name| name == "number")
            };
            let common = one.iter().filter(|name| takes(&other, name));
            let more = other.iter().filter(|name| !one.contains(name) && takes(&one, name));
            common.chain(more).cloned().collect()
        }
        ("additionalProperties" | "items", Value::Object(_), Value::Object(_)) => json!({ "allOf": [one, other] }),
        (_, _, Value::Bool(false)) => Value::Bool(false),
        _ => one.clone(),
    }
}

/// Returns the relevant keywords of a schema except one.
pub(super) fn without(schema: &Map<String, Value>, keyword: &str) -> Map<String, Value> {
    let kept = schema.iter().filter(|(key, _)| *key != keyword && !IRRELEVANT.contains(&&***key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns the references of a schema and of its `allOf`, which `merged` follows.
pub(super) fn references(schema: &Value) -> Vec<&str> {
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    std::iter::once(schema).chain(all).filter_map(|part| part.get("$ref")?.as_str()).collect()
}
