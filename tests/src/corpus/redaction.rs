//! Rows of `redaction.jsonl`: outputs, projected by an allowlist.

use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::__workspace::Projector;

#[derive(Deserialize)]
struct Row {
    id: String,
    allowlist: Vec<String>,
    output: Value,
}

/// Projects a row: `{"id","redacted"}`, or `{"id","error"}`.
///
/// # Errors
///
/// The row cannot be read.
pub fn redaction(row: &str) -> serde_json::Result<String> {
    let row: Row = serde_json::from_str(row)?;
    let projector = Projector::without_schema(&row.allowlist, &[]);
    Ok(match projector.project(&row.output, usize::MAX) {
        Ok(projected) => json!({"id": row.id, "redacted": projected.shown}).to_string(),
        Err(error) => json!({"id": row.id, "error": error.to_string()}).to_string(),
    })
}
