//! Rows of `policy.jsonl`: a policy's decisions on the calls of a task and on injected ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tool_runtime::call::Verdict;
use tool_runtime::policy::{PolicyContext, PolicyResource};
use tool_runtime::registration::{DynamicHandler, DynamicTool};
use tool_runtime::{ToolCatalog, ToolContext, ToolEffect, ToolError, ToolPolicy};

#[derive(Deserialize)]
struct Row {
    id: String,
    catalog: Vec<String>,
    effects: BTreeMap<String, ToolEffect>,
    policy: ToolPolicy,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    args: Value,
}

/// The handler of a row's tools, which are never run.
struct Nothing;

#[async_trait]
impl DynamicHandler for Nothing {
    async fn call(&self, _: &Value, _: &ToolContext) -> Result<Value, ToolError> {
        Ok(Value::Null)
    }
}

/// Decides every call of a row: `{"id","decisions":[..]}`, or `{"id","error"}` for a row that cannot be read.
#[must_use]
pub fn policy(row: &str) -> String {
    match serde_json::from_str(row) {
        Ok(row) => decide(&row).to_string(),
        Err(error) => json!({"id": null, "error": error.to_string()}).to_string(),
    }
}

fn decide(row: &Row) -> Value {
    // A tool without an effect counts as `external_side_effect`, the strictest one.
    let effect_of = |tool: &str| row.effects.get(tool).copied().unwrap_or(ToolEffect::ExternalSideEffect);
    let tool = |name: &String| {
        let schema = json!({"type": "object"});
        DynamicTool::new(name, "A tool.", schema, effect_of(name), Arc::new(Nothing)).foreign()
    };
    let catalog = row.catalog.iter().fold(ToolCatalog::builder(), |builder, name| builder.dynamic(tool(name))).build();
    let catalog = match catalog {
        Ok(catalog) => catalog,
        Err(error) => return json!({"id": row.id, "error": error.to_string()}),
    };
    if let Some(problem) = row.policy.check(catalog.specs(), []).first() {
        return json!({"id": row.id, "error": problem.to_string()});
    }
    let context = PolicyContext { run: &row.id, ..PolicyContext::default() };
    let decisions: Vec<_> = row
        .calls
        .iter()
        .map(|call| {
            let tool = PolicyResource::new(&call.tool, effect_of(&call.tool));
            match row.policy.decide(&context, &tool, &call.args.to_string()).verdict {
                Verdict::Deny => "policy_denied",
                verdict => verdict.as_str(),
            }
        })
        .collect();
    json!({"id": row.id, "decisions": decisions})
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(policy: &str, expected: &str) {
        let row = format!(
            r#"{{"id":"r","catalog":["read","send"],"effects":{{"read":"read_only","send":"external_side_effect"}},
            "policy":{policy},"calls":[{{"tool":"read","args":{{}}}},{{"tool":"send","args":{{}}}},{{"tool":"none","args":{{}}}}]}}"#
        );
        assert_eq!(super::policy(&row), expected);
    }

    #[test]
    fn rows_are_decided() {
        check(r#"{"allowed_tools":["read"]}"#, r#"{"decisions":["allow","policy_denied","policy_denied"],"id":"r"}"#);
        check(
            r#"{"allowed_tools":["read","send"],"require_approval_for_effects":["external_side_effect"]}"#,
            r#"{"decisions":["allow","require_approval","policy_denied"],"id":"r"}"#,
        );
        check(
            r#"{"allowed_tools":["sent"]}"#,
            r#"{"error":"policy, `allowed_tools`: there is no tool `sent`; did you mean `send`?","id":"r"}"#,
        );
    }
}
