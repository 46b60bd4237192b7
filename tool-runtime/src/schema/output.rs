//! Compiles the schema of a tool's output. It has fewer restrictions than arguments, because no model has to write it.

use schemars::generate::Contract;

use crate::error::Problem;
use crate::schema::generate::{Generate, generate};
use crate::schema::lower::{Lowering, lower};
use crate::schema::texts;
use crate::tool::Schema;

/// Compiles the schema of a tool's output, as it serialises. Enums with data, maps, tuples and values of any type stay;
/// references are inlined.
///
/// # Errors
///
/// Recursion, and expansion past the limits.
pub(crate) fn compile_output(schema: &Generate<'_>) -> Result<Schema, Vec<Problem>> {
    let mut generated = generate(schema, &Contract::Serialize)?;
    if let Some(root) = generated.as_object_mut() {
        root.remove("title");
    }
    lower(&mut generated, Lowering::Output)?;
    texts::schema_text(&generated).map_err(|problem| vec![problem])
}
