//! [`PolicyFile`]: the source of a policy, for properties that its decisions do not show.

#[cfg(feature = "mcp-client")]
use std::collections::BTreeMap;

use serde_json::Value;
#[cfg(feature = "mcp-client")]
use serde_json::json;
use tool_runtime::ToolPolicy;
#[cfg(feature = "mcp-client")]
use tool_runtime::tool::Hash;

use crate::exit::Failure;

/// A policy as JSON, with exactly the keys of its file.
#[derive(Debug, Clone)]
pub(crate) struct PolicyFile(Value);

impl PolicyFile {
    pub(crate) fn of(policy: &ToolPolicy) -> Result<Self, Failure> {
        serde_json::to_value(policy).map(Self).map_err(|error| Failure::failed(error.to_string()))
    }

    /// Returns a key of the table `[tools.NAME]`.
    pub(crate) fn tool(&self, name: &str, key: &str) -> Option<&Value> {
        self.key("tools", name, key)
    }

    /// Returns a key of the table `[labels.NAME]`.
    pub(crate) fn label(&self, name: &str, key: &str) -> Option<&Value> {
        self.key("labels", name, key)
    }

    /// Returns the events and the arguments of the notices about a tool; `None` if the policy enables none.
    pub(crate) fn notices(&self, tool: &str) -> Option<(Vec<&str>, Vec<&str>)> {
        fn texts(list: Option<&Value>) -> Vec<&str> {
            list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        }
        let notices = self.0.get("notices").filter(|notices| !notices.is_null())?;
        let listed = notices.get("tools").and_then(|tools| tools.get(tool)?.get("arguments"));
        Some((texts(notices.get("events")), texts(listed)))
    }

    fn key(&self, table: &str, name: &str, key: &str) -> Option<&Value> {
        self.0.get(table)?.get(name)?.get(key).filter(|value| !value.is_null())
    }
}

#[cfg(feature = "mcp-client")]
impl PolicyFile {
    /// Returns the pin of a discovered tool.
    pub(crate) fn pin(&self, name: &str) -> Option<Hash> {
        serde_json::from_value(self.tool(name, "pin")?.clone()).ok()
    }

    /// Returns the policy with these pins, and with an empty allowlist for each tool without one.
    pub(crate) fn with_pins(mut self, pins: &BTreeMap<String, Hash>) -> Option<ToolPolicy> {
        let policy = self.0.as_object_mut()?;
        let tools = policy.entry("tools").or_insert_with(|| json!({})).as_object_mut()?;
        for (name, pin) in pins {
            let rule = tools.entry(name.as_str()).or_insert_with(|| json!({})).as_object_mut()?;
            rule.insert("pin".to_owned(), json!(pin));
            if rule.get("redact").is_none_or(Value::is_null) {
                rule.insert("redact".to_owned(), json!([]));
            }
        }
        serde_json::from_value(self.0).ok()
    }
}
