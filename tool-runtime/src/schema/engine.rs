//! The validator library as the schema compiler uses it: offline, for single patterns, defaults and whole documents.

use serde_json::{Value, json};

use crate::schema::SchemaProblem;

/// Whether a text is a regular expression that the validator takes.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    jsonschema::options().offline().build(&json!({ "pattern": pattern })).is_ok()
}

/// Whether a value keeps to a schema; a schema that does not compile allows nothing.
pub(crate) fn is_valid(schema: &Value, value: &Value) -> bool {
    let validator = jsonschema::options().offline().should_validate_formats(true).build(schema);
    validator.is_ok_and(|validator| validator.is_valid(value))
}

/// Checks a document against its meta-schema and compiles it; nothing is fetched. Values stay out of the texts.
pub(crate) fn compiles(schema: &Value) -> Result<(), SchemaProblem> {
    match jsonschema::options().offline().should_validate_formats(true).build(schema) {
        Ok(_) => Ok(()),
        Err(error) => {
            let keyword = error.kind().keyword().to_owned();
            Err(SchemaProblem::new(
                error.instance_path().as_str(),
                format!("not a valid JSON Schema (`{keyword}`)"),
                "write it as draft-07 or 2020-12 define it",
            ))
        }
    }
}
