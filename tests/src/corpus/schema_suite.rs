//! The cases of the JSON Schema test suite: the valid and invalid instances of each schema.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tool_runtime::__workspace::{Limits, is_subset, parse_value};
use tool_runtime::schema::validator::JsonSchemaValidator;

#[derive(Deserialize)]
struct Row {
    id: String,
    draft: String,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    data: Box<RawValue>,
}

/// One row of `schema-suite` to its result. An instance that the parser refuses is not valid.
///
/// # Errors
///
/// The text is not a row.
pub fn schema_suite(row: &str) -> serde_json::Result<String> {
    let mut row: Row = serde_json::from_str(row)?;
    if let (Value::Object(schema), "draft7") = (&mut row.schema, row.draft.as_str()) {
        schema.entry("$schema").or_insert_with(|| "http://json-schema.org/draft-07/schema#".into());
    }
    let compiled = JsonSchemaValidator.compile_value(&row.schema).ok();
    let valid = |test: &Test| {
        let limits = Limits { bytes: usize::MAX, depth: 128 };
        let instance = parse_value(test.data.get(), &limits);
        compiled.as_ref().zip(instance.ok()).is_some_and(|(schema, instance)| schema.check(&instance).is_ok())
    };
    let valid: Vec<_> = row.tests.iter().map(valid).collect();
    Ok(json!({"id": row.id, "p0": is_subset(&row.schema).is_ok(), "valid": valid}).to_string())
}
