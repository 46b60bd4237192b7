//! The shape of values under a schema, for allowlists.

use serde_json::{Map, Value};

/// Returns the schemas that a value at one place can have. For an array, these are the schemas of its items.
pub(super) fn alternatives(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut waiting = vec![schema];
    while let Some(schema) = waiting.pop() {
        let branches: Vec<_> =
            ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten().collect();
        if !branches.is_empty() {
            waiting.extend(branches);
            if schema.get("properties").is_some() {
                found.push(schema);
            }
        } else if let Some(items) = schema.get("items").filter(|_| schema.get("prefixItems").is_none()) {
            waiting.push(items);
        } else if schema.get("type").and_then(Value::as_str) != Some("null") {
            found.push(schema);
        }
    }
    found
}

pub(super) fn members(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object().filter(|members| !members.is_empty())
}

/// Returns the schema of a map's values. A map with integer keys has it under a pattern.
pub(super) fn values(schema: &Value) -> Option<&Value> {
    let patterns = || schema.get("patternProperties")?.as_object().filter(|patterns| patterns.len() == 1);
    let more = schema.get("additionalProperties").filter(|values| values.is_object() || **values == Value::Bool(true));
    more.or_else(|| patterns()?.values().next())
}

pub(super) fn is_scalar(schema: &Value) -> bool {
    let scalar = |ty: &str| matches!(ty, "string" | "number" | "integer" | "boolean" | "null");
    match schema.get("type") {
        Some(Value::String(ty)) => scalar(ty),
        Some(Value::Array(types)) => types.iter().all(|ty| ty.as_str().is_some_and(scalar)),
        _ => {
            let plain = |value: &Value| !value.is_array() && !value.is_object();
            let values = schema.get("enum").and_then(Value::as_array);
            schema.get("const").is_some_and(plain) || values.is_some_and(|values| values.iter().all(plain))
        }
    }
}

pub(super) fn is_object(schema: &Value) -> bool {
    let ty = schema.get("type");
    let named = match ty {
        Some(Value::String(ty)) => ty == "object",
        Some(Value::Array(types)) => types.iter().any(|ty| ty == "object"),
        _ => false,
    };
    named || schema.get("properties").is_some()
}
