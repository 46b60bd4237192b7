//! Writes schema values as canonical text, within the size limit.

use serde_json::Value;

use crate::error::{Problem, SchemaProblemKind};
use crate::json::canonical;
use crate::tool::Schema;

/// The maximum size of a schema, in bytes of its text. The largest known real schema has 13 KiB.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// Serialises any schema canonically.
pub(crate) fn schema_text(value: &Value) -> Result<Schema, Problem> {
    let text = canonical::to_text(value);
    if text.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok(Schema::from_text(text))
}

/// Returns the problem of a schema whose text exceeds the limit.
pub(crate) fn too_large() -> Problem {
    Problem::schema(
        "",
        format!("the schema has over {MAX_BYTES} bytes"),
        "split the tool, or shorten the lists and descriptions in its types",
    )
    .of_kind(SchemaProblemKind::Size)
}
