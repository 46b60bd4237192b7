//! Strict mode: a closed copy of a schema for the provider, and the way back from the nulls that it makes.

use serde_json::{Map, Value, json};

use crate::wire::EncodeError;

/// Formats that a strict schema may hold.
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords that a strict schema cannot hold and that cannot be dropped without changing what is allowed.
const REFUSED: [&str; 14] = [
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "prefixItems",
    "contains",
    "unevaluatedProperties",
];

/// A closed copy (T1): every property required, optional ones nullable, unknown formats and defaults dropped.
///
/// # Errors
/// What cannot be closed (T2), with a pointer.
pub fn close(tool: &str, schema: &Value) -> Result<Value, EncodeError> {
    let mut closed = schema.clone();
    if let Some(root) = closed.as_object_mut() {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    close_at(tool, &mut closed, &mut String::new())?;
    Ok(closed)
}

fn close_at(tool: &str, schema: &mut Value, path: &mut String) -> Result<(), EncodeError> {
    let refuse = |path: &str| Err(EncodeError::of("strict_unsupported", tool, Some(path.to_owned())));
    let Value::Object(schema) = schema else { return refuse(path) };
    if let Some(keyword) = REFUSED.iter().find(|keyword| schema.contains_key(**keyword)) {
        return refuse(&format!("{path}/{keyword}"));
    }
    schema.remove("default");
    if schema.get("format").is_some_and(|format| !FORMATS.iter().any(|known| format == known)) {
        schema.remove("format");
    }
    // Every property of a closed object is there, so counting them says nothing any more.
    schema.remove("minProperties");
    schema.remove("maxProperties");
    let is_object = names(schema.get("type"), "object") || schema.contains_key("properties");
    if is_object {
        let open = schema.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
        if open || !schema.contains_key("properties") {
            return refuse(path);
        }
        close_object(tool, schema, path)?;
    }
    for keyword in ["items"] {
        if let Some(items) = schema.get_mut(keyword) {
            deeper(tool, items, path, &[keyword])?;
        }
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        for (at, branch) in branches.iter_mut().enumerate() {
            deeper(tool, branch, path, &["anyOf", &at.to_string()])?;
        }
    }
    for keyword in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = schema.get_mut(keyword) {
            for (name, definition) in definitions {
                deeper(tool, definition, path, &[keyword, name])?;
            }
        }
    }
    Ok(())
}

fn close_object(tool: &str, schema: &mut Map<String, Value>, path: &mut String) -> Result<(), EncodeError> {
    let required: Vec<Value> = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return Ok(()) };
    for (name, property) in properties.iter_mut() {
        deeper(tool, property, path, &["properties", name])?;
        if !required.iter().any(|one| one == name) {
            make_nullable(property);
        }
    }
    // The author's order first, so that the copy changes as little as it has to.
    let optional = properties.keys().map(|name| Value::from(name.as_str())).filter(|name| !required.contains(name));
    let all: Vec<Value> = required.iter().cloned().chain(optional).collect();
    schema.insert("required".into(), all.into());
    schema.insert("additionalProperties".into(), false.into());
    Ok(())
}

fn deeper(tool: &str, schema: &mut Value, path: &mut String, segments: &[&str]) -> Result<(), EncodeError> {
    let mark = path.len();
    for segment in segments {
        path.push('/');
        path.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    }
    close_at(tool, schema, path)?;
    path.truncate(mark);
    Ok(())
}

fn names(ty: Option<&Value>, wanted: &str) -> bool {
    match ty {
        Some(Value::String(ty)) => ty == wanted,
        Some(Value::Array(types)) => types.iter().any(|ty| ty == wanted),
        _ => false,
    }
}

/// Allows null beside what is allowed.
fn make_nullable(property: &mut Value) {
    if allows_null(property) {
        return;
    }
    let Some(schema) = property.as_object_mut() else { return };
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
        return;
    }
    if !schema.contains_key("type") || schema.contains_key("const") {
        let inner = std::mem::take(schema);
        schema.insert("anyOf".into(), json!([inner, {"type": "null"}]));
        return;
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push("null".into()),
        Some(ty) => *ty = json!([ty.take(), "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
}

/// A schema that takes null by itself.
fn allows_null(schema: &Value) -> bool {
    if schema.get("const").is_some_and(|only| !only.is_null()) {
        return false;
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().any(Value::is_null);
    }
    if let Some(branches) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        return branches.iter().any(allows_null);
    }
    match schema.get("type") {
        Some(ty) => names(Some(ty), "null"),
        None => {
            schema.get("$ref").is_none() && schema.as_object().is_some_and(Map::is_empty)
                || *schema == Value::Bool(true)
        }
    }
}

/// T3: removes the nulls that only the closed copy allows; `schema` is the authoritative one.
pub fn strip_nulls(schema: &Value, arguments: &mut Value) {
    strip_at(schema, schema, arguments, 0);
}

fn strip_at(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
    if depth > 64 {
        return;
    }
    let schema = resolve(root, schema);
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            members.retain(|name, member| {
                let Some(property) = properties.and_then(|properties| properties.get(name)) else { return true };
                let optional = !required.is_some_and(|names| names.iter().any(|one| one == name));
                !(member.is_null() && optional && !allows_null(resolve(root, property)))
            });
            for (name, member) in members {
                if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                    strip_at(root, property, member, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| strip_at(root, schema, item, depth + 1));
            }
        }
        _ => {}
    }
}

/// Follows local references, a few times at most.
fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    for _ in 0..16 {
        let Some(target) = schema.get("$ref").and_then(Value::as_str) else { break };
        let Some(found) = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { break };
        schema = found;
    }
    schema
}
