//! The Cedar schema of a catalog. Each tool is an action in the group of its effect. The group `call` contains all
//! tools.

use serde_json::{Map, Value, json};

use crate::policy::cedar::kind::Kind;
use crate::tool::ToolEffect;

/// A tool as policies see it.
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    /// `None` for a discovered tool that its server has not listed yet.
    pub(super) effect: Option<ToolEffect>,
    pub(super) arguments: Kind,
}

/// Returns the schema as JSON.
pub(super) fn of<'a>(
    attributes: impl Iterator<Item = &'a String>,
    tools: impl Iterator<Item = Described<'a>>,
) -> Value {
    let texts = json!({ "type": "Set", "element": { "type": "String" } });
    let optional = json!({ "type": "String", "required": false });
    let attributes: Map<_, _> = attributes.map(|name| (name.clone(), texts.clone())).collect();
    let mut actions = Map::from_iter([("call".to_owned(), json!({}))]);
    for effect in ToolEffect::ALL {
        actions.insert(effect.as_str().to_owned(), json!({ "memberOf": [{ "id": "call" }] }));
    }
    for tool in tools {
        let groups = tool.effect.map(|effect| json!({ "id": effect.as_str() }));
        let groups: Vec<_> = groups.into_iter().chain([json!({ "id": "call" })]).collect();
        let context = json!({ "type": "Record", "attributes": {
            "labels": texts,
            "caller": { "type": "String" },
            "graph": optional,
            "arguments": tool.arguments.to_json(),
        } });
        let applies = json!({ "principalTypes": ["Principal"], "resourceTypes": ["Tool"], "context": context });
        actions.insert(tool.name.to_owned(), json!({ "memberOf": groups, "appliesTo": applies }));
    }
    json!({ "": {
        "entityTypes": {
            "Role": {},
            "Tenant": {},
            "Principal": {
                "memberOfTypes": ["Role", "Tenant"],
                "shape": { "type": "Record", "attributes": attributes },
            },
            "Tool": { "shape": { "type": "Record", "attributes": {
                "effect": { "type": "String" },
                "tags": texts,
                "discovered": { "type": "Boolean" },
                "server": optional,
            } } },
        },
        "actions": actions,
    } })
}
