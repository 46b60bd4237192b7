//! Rows of `hostile-definitions.jsonl`: whether a definition from an untrusted source may be loaded.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::__workspace as workspace;
use tool_runtime::catalog::CatalogBuilder;
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError};

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    id: Value,
    /// The unparsed definition, because one that cannot be parsed is a refused row, not an error.
    tool: Option<Value>,
    /// A schema that is too large for a row: pieces of text, each with its number of repetitions.
    #[serde(rename = "input_schema_pieces")]
    pieces: Option<Vec<(String, usize)>>,
    /// Names of one catalog; `server|tool` for tools of servers.
    names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
}

/// Decides a row: `{"id","decision","reason"}`. Every row gets an answer; an unreadable one is refused.
#[must_use]
pub fn definitions(row: &str) -> String {
    const UNREADABLE: (&str, Option<&str>) = ("reject", Some("schema"));
    let (id, (decision, reason)) = match serde_json::from_str(row) {
        Ok(Row { id, tool: Some(tool), pieces, .. }) => {
            (id, serde_json::from_value(tool).map_or(UNREADABLE, |tool| reviewed(&tool, pieces)))
        }
        Ok(Row { id, names: Some(names), .. }) => (id, joined(&names)),
        Ok(Row { id, .. }) => (id, UNREADABLE),
        Err(_) => (Value::Null, UNREADABLE),
    };
    json!({"id": id, "decision": decision, "reason": reason}).to_string()
}

fn reviewed(tool: &Definition, pieces: Option<Vec<(String, usize)>>) -> (&'static str, Option<&'static str>) {
    let description = tool.description.as_deref().unwrap_or_default();
    let verdict = match (pieces, &tool.input_schema) {
        (Some(pieces), _) => {
            let text: String = pieces.iter().map(|(text, times)| text.repeat(*times)).collect();
            workspace::review_text(&tool.name, description, &text)
        }
        (None, schema) => workspace::review(&tool.name, description, schema.as_ref().unwrap_or(&Value::Null)),
    };
    // The type of a reason has no public name.
    #[allow(clippy::redundant_closure_for_method_calls)]
    let reason = verdict.reason().map(|reason| reason.as_str());
    (verdict.advice().as_str(), reason)
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
        let (schema, handler) = (json!({"type": "object"}), Arc::new(Never));
        let of_server = name.strip_prefix("mcp__").and_then(|name| name.split_once("__"));
        match of_server.or_else(|| name.split_once('|')) {
            Some((server, tool)) => DynamicTool::discovered(server, tool, "A tool.", schema, handler),
            None => DynamicTool::new(name.clone(), "A tool.", schema, ToolEffect::ReadOnly, handler),
        }
    };
    match names.iter().map(tool).fold(ToolCatalog::builder(), CatalogBuilder::dynamic).build() {
        Ok(_) => ("accept", None),
        Err(error) => ("reject", Some(error.code())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows line by line, as the program reads them: a hostile row does not prevent the answers of other rows.
    #[test]
    fn every_row_is_answered() {
        let schema = json!({"type": "object", "properties": {}});
        let rows = [
            (json!({"id": "null", "tool": {"name": "t", "description": null, "inputSchema": schema}}), "accept"),
            (json!({"id": "none", "tool": {"name": "t", "inputSchema": schema}}), "accept"),
            (json!({"id": "number", "tool": {"name": "t", "description": 5, "inputSchema": schema}}), "reject"),
            (json!({"id": "nameless", "tool": {"name": null, "inputSchema": schema}}), "reject"),
            (json!({"id": "text", "tool": "t"}), "reject"),
            (json!({"id": "empty"}), "reject"),
            (json!({"id": "good", "tool": {"name": "t", "description": "Fine.", "inputSchema": schema}}), "accept"),
        ];
        for (row, expected) in rows {
            let answer: Value = serde_json::from_str(&definitions(&row.to_string())).unwrap_or_default();
            assert_eq!((&answer["id"], &answer["decision"]), (&row["id"], &json!(expected)), "{row}");
        }
        let joined = |names: &[&str]| definitions(&json!({"id": 1, "names": names}).to_string());
        assert!(joined(&["core__read", "mcp__evil__core__read"]).contains("\"accept\""));
        assert!(joined(&["mcp__a__b", "mcp__a__b"]).contains("collision"));
        assert!(joined(&["a|b", "a|c"]).contains("\"accept\"") && joined(&["a|b", "a|b"]).contains("collision"));
        // The size and the depth of the pieces decide, although the tool of the row has no schema.
        for (pieces, reason) in [
            (json!([["{\"properties\":{\"a\":", 5000], ["{}", 1], ["}}", 5000]]), "depth"),
            (json!([["{\"type\":\"object\",\"enum\":[1", 1], [",1", 500_000], ["]}", 1]]), "size"),
        ] {
            let row = json!({"id": 1, "tool": {"name": "t", "description": "x"}, "input_schema_pieces": pieces});
            let expected = json!({"id": 1, "decision": "reject", "reason": reason}).to_string();
            assert_eq!(definitions(&row.to_string()), expected);
        }
        for row in ["", "{", "[]", "{\"id\": 7, \"tool\": 1, \"names\": 2}"] {
            assert!(definitions(row).contains("\"reject\""), "{row}");
        }
    }
}
