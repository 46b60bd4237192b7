//! Compares two definitions that an MCP server published, with the same verdicts as for a lock (`tools.lock`).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::catalog::lock::LockMark::{Review, Visible};
use crate::catalog::lock::LockVerdict::{Major, Minor, Patch};
use crate::catalog::lock::changes::ToolChanges;
use crate::catalog::lock::shape::{self, Use};
use crate::catalog::lock::{LockChange, LockReport};
use crate::text::{cut, pointer};

/// Compares two definitions as a server published them, key by key. The allowlist for outputs is in the policy, so
/// every member of an output counts here.
pub(crate) fn compare_published(name: &str, before: &Value, now: &Value) -> LockReport {
    let mut changes = Vec::new();
    let keys: BTreeSet<_> = [before, now].into_iter().filter_map(Value::as_object).flat_map(|all| all.keys()).collect();
    for key in keys {
        let (old, new) = (before.get(key), now.get(key));
        if old == new {
            continue;
        }
        let mut at = String::new();
        pointer::push(&mut at, cut(key, 128));
        let mut changed = |verdict, mark| {
            changes.push(LockChange::new(at.clone(), verdict, mark, shape::between(old, new)));
        };
        match (key.as_str(), old, new) {
            ("inputSchema", Some(old), Some(new)) => shape::compare(&at, old, new, Use::Input, &mut changes),
            ("outputSchema", Some(old), Some(new)) => shape::compare(&at, old, new, Use::Output(None), &mut changes),
            ("outputSchema", None, Some(_)) => changed(Minor, None),
            ("outputSchema" | "inputSchema" | "name", ..) => changed(Major, Some(Review)),
            ("description" | "title", ..) => changed(Patch, Some(Visible)),
            // Claims of the server, and members that this library does not read.
            _ => changed(Patch, Some(Review)),
        }
    }
    LockReport::of_tool(ToolChanges::new(name, changes))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_change_of_a_server_is_classified() {
        let base = json!({"name": "read", "description": "Reads.", "inputSchema": {"type": "object",
            "properties": {"path": {"type": "string"}}}, "annotations": {"readOnlyHint": true}});
        let with = |key: &str, value: Value| {
            let mut now = base.clone();
            now[key] = value;
            let found = compare_published("mcp__s__read", &base, &now);
            (found.verdict(), found.is_visible(), found.needs_review())
        };
        let properties = |value: Value| json!({"type": "object", "properties": value});
        assert_eq!(with("name", json!("read")), ("unchanged", false, false));
        assert_eq!(with("description", json!("Reads it.")), ("patch", true, false));
        assert_eq!(with("annotations", json!({})), ("patch", false, true));
        assert_eq!(with("x", json!(1)), ("patch", false, true));
        let more = properties(json!({"path": {"type": "string"}, "limit": {"type": "integer"}}));
        assert_eq!(with("inputSchema", more), ("minor", false, false));
        assert_eq!(with("inputSchema", properties(json!({}))), ("major", false, false));
        assert_eq!(with("outputSchema", json!({"type": "object"})), ("minor", false, false));
    }
}
