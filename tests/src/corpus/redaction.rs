//! Rows of `redaction.jsonl`: outputs of tools, and the parts of them that an allowlist lets through.

use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::__workspace::Projector;

#[derive(Deserialize)]
struct Row {
    id: String,
    allowlist: Vec<String>,
    output: Value,
}

/// Passes the output of a row through its allowlist: `{"id","redacted"}`, or `{"id","error"}`.
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
