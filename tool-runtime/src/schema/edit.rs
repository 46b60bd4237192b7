//! Small edits of a compiled schema, for what an attribute says rather than a type.

use serde_json::{Map, Value};

use crate::json::canonical;
use crate::schema::{SchemaProblem, defaults, texts};
use crate::tool::Schema;

/// Says that at least `count` properties are there.
#[must_use]
pub fn add_min_properties(schema: &Schema, count: usize) -> Schema {
    let mut value = schema.to_value();
    if let Value::Object(root) = &mut value {
        root.insert("minProperties".to_owned(), count.into());
    }
    Schema::from_text(canonical::to_text(&value))
}

/// Publishes `require_any` as `minProperties` when the names are all the optional arguments there are; otherwise
/// the schema stays as it is, because JSON Schema could only say it with `anyOf`.
#[must_use]
pub fn publish_require_any(schema: &Schema, names: &[&str]) -> Schema {
    let value = schema.to_value();
    let required: Vec<&Value> = value.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let mut optional = properties(&value)
        .into_iter()
        .flat_map(Map::keys)
        .filter(|name| !required.iter().any(|required| *required == name.as_str()))
        .peekable();
    if names.is_empty() || optional.peek().is_none() || !optional.all(|name| names.contains(&name.as_str())) {
        return schema.clone();
    }
    add_min_properties(schema, required.len() + 1)
}

/// Writes the default of a top-level property and takes the property out of `required`.
///
/// # Errors
///
/// There is no such property, or the default breaks its schema.
pub fn set_property_default(schema: &Schema, name: &str, default: &Value) -> Result<Schema, SchemaProblem> {
    let mut value = schema.to_value();
    let property = value.get_mut("properties").and_then(|all| all.get_mut(name)).and_then(Value::as_object_mut);
    let Some(property) = property else {
        return Err(SchemaProblem::new(
            "/properties",
            format!("there is no property `{name}`"),
            "name one that exists",
        ));
    };
    if !defaults::fits(property, default) {
        return Err(SchemaProblem::new(
            format!("/properties/{name}/default"),
            "the default breaks its own schema",
            "choose a default that the rules of the argument allow",
        ));
    }
    property.insert("default".to_owned(), default.clone());
    if let Some(Value::Array(required)) = value.get_mut("required") {
        required.retain(|required| required != name);
    }
    texts::schema_text(&value)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}
