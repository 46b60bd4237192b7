//! Cases of policies in Cedar: text that is refused, decisions, and the stages at which the gate evaluates them.

mod catalog;
mod decide;
mod gate;
mod text;

use crate::error::BuildError;
use crate::policy::ToolPolicy;
use crate::policy::tests::spec;
use crate::tool::{Hash, Schema, ToolEffect, ToolSpec};

const PERMIT: &str = "permit(principal, action, resource);";

/// A policy that allows three tools, with these Cedar policies.
fn policy(cedar: &str) -> Result<ToolPolicy, BuildError> {
    let tools = ["mail__send", "docs__search", "mcp__wiki__search"];
    let wiki = serde_json::json!({ "effect": "read_only", "pin": "00".repeat(32) });
    let written = serde_json::json!({
        "allowed_tools": tools,
        "tools": { "mcp__wiki__search": wiki },
        "labels": { "minor": { "from_run": true, "deny_effects": ["state_change"] } },
        "cedar": { "policies": cedar },
    });
    ToolPolicy::from_json(&written.to_string())
}

fn specs() -> [ToolSpec; 3] {
    let mail = r##"{
        "type": "object",
        "properties": {
            "to": { "type": "array", "items": { "type": "string" } },
            "kind": { "$ref": "#/$defs/kind" },
            "copies": { "type": "integer" },
            "amount": { "type": "number" },
            "urgent": { "type": ["boolean", "null"] },
            "place": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
            "choice": { "anyOf": [{ "type": "string" }, { "type": "integer" }] }
        },
        "required": ["to", "kind", "copies", "amount", "urgent"],
        "$defs": { "kind": { "enum": ["letter", "bill"] } }
    }"##;
    [
        ToolSpec {
            input_schema: Schema::from_text(mail),
            tags: vec!["mail".into()],
            ..spec("mail__send", ToolEffect::ExternalSideEffect)
        },
        ToolSpec { tags: vec!["web".into()], ..spec("docs__search", ToolEffect::ReadOnly) },
        ToolSpec { pin: Some(Hash([0; 32])), ..spec("mcp__wiki__search", ToolEffect::ExternalSideEffect) },
    ]
}
