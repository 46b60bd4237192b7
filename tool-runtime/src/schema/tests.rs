//! Tests of the schema compiler: one check per area, cases as data.
#![allow(clippy::needless_pass_by_value, reason = "an expected value is written where it is used")]

mod arguments;
mod edits;
mod elsewhere;
mod examples;
mod outputs;
mod refusals;
mod reviews;
mod subsets;

use schemars::JsonSchema;
use serde_json::Value;

use crate::error::Problem;
use crate::schema::{compile_input, compile_output};

/// The compiled schema of arguments.
fn input<T: JsonSchema>() -> Result<Value, Vec<Problem>> {
    let first = compile_input(&T::json_schema, &[])?;
    let again = compile_input(&schemars::SchemaGenerator::subschema_for::<T>, &[])?;
    assert_eq!(first, again, "a reference at the root changes nothing");
    Ok(first.to_value())
}

/// The compiled schema of an output.
fn output<T: JsonSchema>() -> Result<Value, Vec<Problem>> {
    compile_output(&T::json_schema).map(|schema| schema.to_value())
}
