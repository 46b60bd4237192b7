//! Small edits of a compiled schema, for rules that come from an attribute and not from a type.

use serde_json::{Map, Value};

use crate::json::canonical;
use crate::tool::Schema;

/// Requires at least `count` properties.
#[must_use]
pub(crate) fn add_min_properties(schema: &Schema, count: usize) -> Schema {
    let mut value = schema.to_value();
    if let Value::Object(root) = &mut value {
        root.insert("minProperties".to_owned(), count.into());
    }
    Schema::from_text(canonical::to_text(&value))
}

/// Publishes `require_any` as `minProperties` if `names` contains every optional argument of the tool. Otherwise the
/// schema stays unchanged, because JSON Schema could express the rule only with `anyOf`.
#[must_use]
pub(crate) fn publish_require_any(schema: &Schema, names: &[&str]) -> Schema {
    if names.is_empty() {
        return schema.clone();
    }
    let value = schema.to_value();
    let required: Vec<&Value> = value.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let mut optional = properties(&value)
        .into_iter()
        .flat_map(Map::keys)
        .filter(|name| !required.iter().any(|required| *required == name.as_str()))
        .peekable();
    if optional.peek().is_none() || !optional.all(|name| names.contains(&name.as_str())) {
        return schema.clone();
    }
    add_min_properties(schema, required.len() + 1)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
