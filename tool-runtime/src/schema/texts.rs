//! Writes schema values as canonical text, within the size cap.

use serde_json::Value;

use crate::error::{Problem, SchemaProblemKind};
use crate::json::canonical;
use crate::tool::Schema;

/// The largest schema that is accepted, in bytes of its text. The largest real one seen has 13 KiB.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// Serialises any schema canonically.
pub(crate) fn schema_text(value: &Value) -> Result<Schema, Problem> {
    let text = canonical::to_text(value);
    if text.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok(Schema::from_text(text))
}

/// The problem of a schema whose text is over the cap.
pub(crate) fn too_large() -> Problem {
    Problem::schema(
        "",
        format!("the schema has over {MAX_BYTES} bytes"),
        "split the tool, or shorten the lists and descriptions in its types",
    )
    .of_kind(SchemaProblemKind::Size)
}
