//! Rewrites of JSON schemas that keep their meaning, for models that accept only simple schemas: optional values
//! without `anyOf`, an `allOf` of one schema merged into its parent, and alternatives of constants as `enum`.

use serde_json::{Map, Value};

/// Keywords that set no rule. If two merged schemas have the same keyword, the value of the outer schema wins, because
/// it is nearer to the field's author.
pub(super) const ANNOTATIONS: [&str; 8] =
    ["$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"];

/// Rules that depend on the keywords next to them, so that moving them changes their meaning.
const NEIGHBOURS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "maxContains",
    "minContains",
    "patternProperties",
    "prefixItems",
    "properties",
    "then",
];

/// Rules for items and properties that no other rule evaluates.
pub(super) const UNEVALUATED: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];

/// Merges `anyOf: [X, null]`, `oneOf: [X, null]` and `allOf: [X]` into the schema that contains them. Returns whether
/// `null` was an alternative, so that the caller lets the merged schema admit `null`.
///
/// The caller can do that only by `type`, `enum` and `const`. If another rule of X can exclude `null`, for example
/// `$ref`, `not` or alternatives that are not constants, the schema stays unchanged. With `eager`, X is merged anyway,
/// for a caller that then refuses X with its own message.
pub(crate) fn hoist(schema: &mut Map<String, Value>, eager: bool) -> bool {
    let mut nullable = false;
    loop {
        let Some((keyword, at, null)) = candidate(schema, eager) else { return nullable };
        let Some(Value::Array(mut branches)) = schema.remove(keyword) else { return nullable };
        let Value::Object(inner) = branches.swap_remove(at) else { return nullable };
        nullable |= null;
        for (key, value) in inner {
            if !schema.contains_key(&key) {
                schema.insert(key, value);
            }
        }
    }
}

/// Returns the keyword to merge, the index of the branch that stays, and whether the other branch is `null`.
fn candidate(schema: &Map<String, Value>, eager: bool) -> Option<(&'static str, usize, bool)> {
    let found = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|keyword| {
        let branches = schema.get(keyword)?.as_array()?;
        match &branches[..] {
            [_] => Some((keyword, 0, false)),
            [first, second] if keyword != "allOf" && is_null(first) != is_null(second) => {
                Some((keyword, usize::from(is_null(first)), true))
            }
            _ => None,
        }
    })?;
    let inner = schema.get(found.0)?.as_array()?.get(found.1)?.as_object()?;
    // If X itself accepts `null`, both alternatives match `null`, so `oneOf: [X, null]` refuses it.
    if found.0 == "oneOf" && found.2 && !excludes_null(inner) {
        return None;
    }
    if found.2 && !eager && !takes_null_by_type(inner) {
        return None;
    }
    // Rules next to `anyOf: [X, null]` also apply to `null`, and these five can refuse it.
    let beside = found.2 && ["enum", "const", "type", "not", "$ref"].iter().any(|key| schema.contains_key(*key));
    (!beside && !inner.contains_key(found.0) && joins(schema, inner)).then_some(found)
}

/// Whether the rules of two schemas that both apply can be merged into the outer one without a change in meaning.
pub(super) fn joins(outer: &Map<String, Value>, inner: &Map<String, Value>) -> bool {
    let clash = inner
        .iter()
        .any(|(key, value)| !ANNOTATIONS.contains(&key.as_str()) && outer.get(key).is_some_and(|own| own != value));
    let neighbours = [outer, inner].iter().all(|side| NEIGHBOURS.iter().any(|key| side.contains_key(*key)));
    !clash && !neighbours && !UNEVALUATED.iter().any(|key| outer.contains_key(*key))
}

fn is_null(schema: &Value) -> bool {
    schema.as_object().is_some_and(|schema| {
        schema.get("type").is_some_and(|ty| ty == "null")
            && schema.keys().all(|key| key == "type" || ANNOTATIONS.contains(&key.as_str()))
    })
}

fn excludes_null(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(ty)) => ty != "null",
        Some(Value::Array(types)) => !types.iter().any(|ty| ty == "null"),
        _ => schema.get("const").is_some_and(|value| !value.is_null()),
    }
}

/// Whether only `type`, `enum` and `const` exclude `null`.
fn takes_null_by_type(schema: &Map<String, Value>) -> bool {
    let blocking = ["$dynamicRef", "$ref", "allOf", "else", "if", "not", "then"];
    !blocking.iter().any(|key| schema.contains_key(*key))
        && ["oneOf", "anyOf"].iter().all(|key| schema.get(*key).is_none_or(|branches| constants(branches).is_some()))
}

/// Adds `null` to the `type`, the `enum` and the `const` of a schema that was rewritten for a model.
pub(crate) fn add_null(schema: &mut Map<String, Value>) {
    match schema.get_mut("type") {
        Some(Value::Array(types)) if !types.iter().any(|ty| ty == "null") => types.push("null".into()),
        Some(Value::String(ty)) if ty != "null" => {
            let ty = std::mem::take(ty);
            schema.insert("type".to_owned(), vec![ty, "null".to_owned()].into());
        }
        _ => {}
    }
    if let Some(constant) = schema.remove("const") {
        schema.insert("enum".to_owned(), Value::Array(vec![constant]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// Turns alternatives that are all constants of one scalar type into `enum`. Appends the descriptions of the
/// alternatives to the description of the schema.
pub(crate) fn fold_constants(schema: &mut Map<String, Value>) {
    let Some((keyword, folded)) =
        ["oneOf", "anyOf"].into_iter().find_map(|keyword| Some((keyword, constants(schema.get(keyword)?)?)))
    else {
        return;
    };
    let taken = ["enum", "const"].iter().any(|key| schema.contains_key(*key))
        || schema.get("type").is_some_and(|ty| ty != folded.ty);
    if taken || (keyword == "oneOf" && folded.repeated) {
        return;
    }
    schema.remove(keyword);
    schema.insert("type".to_owned(), folded.ty.into());
    schema.insert("enum".to_owned(), Value::Array(folded.values));
    if !folded.docs.is_empty() {
        let own = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let gap = if own.is_empty() { "" } else { "\n\n" };
        let description = format!("{own}{gap}{}", folded.docs.join("\n"));
        schema.insert("description".to_owned(), description.into());
    }
}

struct Constants {
    ty: &'static str,
    values: Vec<Value>,
    docs: Vec<String>,
    repeated: bool,
}

fn constants(branches: &Value) -> Option<Constants> {
    let mut all = Constants { ty: "", values: Vec::new(), docs: Vec::new(), repeated: false };
    for branch in branches.as_array()? {
        let branch = branch.as_object()?;
        let known = |key: &String| matches!(&**key, "type" | "const" | "enum") || ANNOTATIONS.contains(&&**key);
        if !branch.keys().all(known) || branch.contains_key("const") == branch.contains_key("enum") {
            return None;
        }
        let values = match branch.get("enum") {
            Some(values) => values.as_array()?.clone(),
            None => vec![branch.get("const")?.clone()],
        };
        for value in values {
            let ty = scalar_type(&value)?;
            if !(all.ty.is_empty() || all.ty == ty) || branch.get("type").is_some_and(|written| written != ty) {
                return None;
            }
            all.ty = ty;
            if let Some(doc) = branch.get("description").and_then(Value::as_str) {
                let doc: Vec<&str> = doc.split_whitespace().collect();
                let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                all.docs.push(format!("- `{shown}`: {}", doc.join(" ")));
            }
            all.repeated |= all.values.contains(&value);
            if !all.values.contains(&value) {
                all.values.push(value);
            }
        }
    }
    (!all.values.is_empty()).then_some(all)
}

/// Returns the type of a constant. `None` for a value that a folded `enum` cannot have.
pub(crate) fn scalar_type(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Bool(_) => Some("boolean"),
        _ => None,
    }
}
