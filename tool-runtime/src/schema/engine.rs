//! The default validator as the schema compiler uses it: for single patterns, defaults and whole documents.

use serde_json::{Value, json};

use crate::json::Tree;
use crate::schema::SchemaProblem;
use crate::schema::validator::JsonSchemaValidator;

/// Whether a text is a regular expression that the validator takes.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    compiles(&json!({ "pattern": pattern })).is_ok()
}

/// Returns whether a value conforms to a schema; `false` if the schema does not compile.
pub(crate) fn is_valid(schema: &Value, value: &Value) -> bool {
    JsonSchemaValidator.compile_value(schema).is_ok_and(|compiled| compiled.check(&Tree::from_value(value)).is_ok())
}

/// Returns whether a part of a document takes a value. `None` if the part cannot be compiled on its own.
pub(crate) fn takes(document: &Value, part: &Value, value: &Value) -> Option<bool> {
    let mut schema = part.as_object()?.clone();
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(shared) = document.get(key) {
            schema.entry(key).or_insert_with(|| shared.clone());
        }
    }
    let compiled = JsonSchemaValidator.compile_value(&Value::Object(schema)).ok()?;
    Some(compiled.check(&Tree::from_value(value)).is_ok())
}

/// Checks a document against its meta-schema and compiles it.
pub(crate) fn compiles(schema: &Value) -> Result<(), SchemaProblem> {
    JsonSchemaValidator.compile_value(schema).map(|_| ())
}
