//! [`ServerRule`]: the rules for all tools of a server. The rules for a single tool take precedence, except over
//! `enabled = false`.

use serde::{Deserialize, Serialize};

use crate::policy::budget::ToolBudget;
use crate::policy::parse;
use crate::tool::{ToolEffect, is_discovered};

/// The rules for the tools of one server (`servers.ID`), whose names begin with `mcp__ID__`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerRule {
    /// `false` denies every tool of the server, even if another rule allows it.
    pub enabled: bool,
    /// The effect of tools without `tools.NAME.effect`.
    pub effect: Option<ToolEffect>,
    /// The maximum time of one call, in milliseconds, unless `budgets.tools.NAME` sets it.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    /// The maximum size of a call's result, in bytes, unless `budgets.tools.NAME` sets it.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_result_bytes: Option<usize>,
    /// The maximum size of a call's arguments, in bytes, unless `budgets.tools.NAME` sets it.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_argument_bytes: Option<usize>,
}

impl Default for ServerRule {
    fn default() -> Self {
        Self { enabled: true, effect: None, max_runtime_ms: None, max_result_bytes: None, max_argument_bytes: None }
    }
}

impl ServerRule {
    /// Returns the budget of one call of a tool of the server.
    pub(super) const fn budget(&self) -> ToolBudget {
        let Self { max_runtime_ms, max_result_bytes, max_argument_bytes, .. } = *self;
        ToolBudget { max_runtime_ms, max_result_bytes, max_argument_bytes }
    }
}

/// Returns the server of a tool with a name such as `mcp__SERVER__TOOL`. `None` for any other tool.
pub(super) fn server_of(tool: &str) -> Option<&str> {
    if !is_discovered(tool) {
        return None;
    }
    tool.split_once("__").and_then(|(_, rest)| rest.split_once("__")).map(|(server, _)| server)
}
