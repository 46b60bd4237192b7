//! Rows of `hostile-definitions.jsonl`: whether a definition from an untrusted source may be loaded.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::catalog::CatalogBuilder;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::schema;
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};

#[derive(Deserialize)]
struct Row {
    id: String,
    tool: Option<Definition>,
    names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    #[serde(default)]
    description: String,
    input_schema: Option<Value>,
    #[serde(rename = "input_schema_pieces")]
    pieces: Option<Vec<(String, usize)>>,
}

/// Decides a row: `{"id","decision","reason"}`.
///
/// # Errors
///
/// The row cannot be read.
pub fn definitions(row: &str) -> serde_json::Result<String> {
    let row: Row = serde_json::from_str(row)?;
    let (decision, reason) = match (&row.tool, &row.names) {
        (Some(tool), _) => reviewed(tool),
        (None, Some(names)) => joined(names),
        (None, None) => ("reject", Some("schema")),
    };
    Ok(json!({"id": row.id, "decision": decision, "reason": reason}).to_string())
}

fn reviewed(tool: &Definition) -> (&'static str, Option<&'static str>) {
    let verdict = match (&tool.pieces, &tool.input_schema) {
        (Some(pieces), _) => {
            let text: String = pieces.iter().map(|(text, times)| text.repeat(*times)).collect();
            schema::review_text(&tool.name, &tool.description, &text)
        }
        (None, schema) => schema::review(&tool.name, &tool.description, schema.as_ref().unwrap_or(&Value::Null)),
    };
    (verdict.advice().as_str(), verdict.reason().map(schema::Reason::as_str))
}

struct Never;

#[async_trait::async_trait]
impl DynamicHandler for Never {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Err(ToolError::safe("never run"))
    }
}

/// Several names in one catalog.
fn joined(names: &[String]) -> (&'static str, Option<&'static str>) {
    let tool = |name: &String| {
        DynamicTool::new(name.clone(), "A tool.", json!({"type": "object"}), ToolEffect::ReadOnly, Arc::new(Never))
    };
    match names.iter().map(tool).fold(ToolCatalog::builder(), CatalogBuilder::dynamic).build() {
        Ok(_) => ("accept", None),
        Err(error) => ("reject", Some(error.code())),
    }
}
