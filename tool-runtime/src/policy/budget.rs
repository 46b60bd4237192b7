//! [`Budgets`]: the limits of calls, runs, tasks of graphs, principals and tenants, as data.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::allowance::{self, Allowance, least};
use crate::policy::parse;

/// The limits of calls, runs, tasks of graphs, principals and tenants. Written as `[budgets.default]`,
/// `[budgets.tools.NAME]`, `[budgets.run]`, `[budgets.graphs.NAME]`, `[budgets.principal]` and `[budgets.tenant]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Budgets {
    /// For one call of any tool.
    #[serde(deserialize_with = "parse::table")]
    pub default: ToolBudget,
    /// For one call of this tool; absent keys come from the tool's server, else from `default`.
    #[serde(deserialize_with = "parse::named_map")]
    pub tools: BTreeMap<String, ToolBudget>,
    /// For one run.
    #[serde(deserialize_with = "allowance::of_run")]
    pub run: Allowance,
    /// For one task of this graph (an agent or a script that runs as a tool). `run` limits the task, too; the lower
    /// limit applies. The task also uses the remaining budget of the calling run.
    #[serde(deserialize_with = "allowance::of_graphs", skip_serializing_if = "BTreeMap::is_empty")]
    pub graphs: BTreeMap<String, Allowance>,
    /// For all runs of a principal in a tenant, in all processes that share a store. Each budget has a window, the
    /// period after which its used amounts start again at zero.
    #[serde(deserialize_with = "allowance::shared", skip_serializing_if = "Vec::is_empty")]
    pub principal: Vec<Allowance>,
    /// For all runs of a tenant, in all processes that share a store. Each budget has a window.
    #[serde(deserialize_with = "allowance::shared", skip_serializing_if = "Vec::is_empty")]
    pub tenant: Vec<Allowance>,
}

/// The budget of one call. An absent key takes its value from the tool's server, else from the budget for all tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "the keys of a policy")]
pub(crate) struct ToolBudget {
    /// The longest time of the call, in milliseconds.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_runtime_ms: Option<u64>,
    /// The maximum size of the result, in bytes.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_result_bytes: Option<usize>,
    /// The maximum size of the arguments, in bytes.
    #[serde(deserialize_with = "parse::limit", skip_serializing_if = "Option::is_none")]
    pub max_argument_bytes: Option<usize>,
}

/// The limits of one call of a tool, with defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolLimits {
    /// The longest time of the call.
    pub(crate) runtime: Option<Duration>,
    /// The maximum size of the result, in bytes.
    pub(crate) result_bytes: usize,
    /// The maximum size of the arguments, in bytes.
    pub(crate) argument_bytes: usize,
}

impl ToolLimits {
    /// Returns the lower value of each limit.
    pub(super) fn least(self, other: Self) -> Self {
        Self {
            runtime: least(self.runtime, other.runtime),
            result_bytes: self.result_bytes.min(other.result_bytes),
            argument_bytes: self.argument_bytes.min(other.argument_bytes),
        }
    }
}

impl Budgets {
    /// Returns the limits of one call: from the budget of the tool, else of its server, else of all tools.
    pub(super) fn limits_of(&self, name: Option<&str>, server: ToolBudget, limits: &PolicyLimits) -> ToolLimits {
        let named = name.and_then(|name| self.tools.get(name)).copied().unwrap_or_default();
        let named = ToolBudget {
            max_runtime_ms: named.max_runtime_ms.or(server.max_runtime_ms),
            max_result_bytes: named.max_result_bytes.or(server.max_result_bytes),
            max_argument_bytes: named.max_argument_bytes.or(server.max_argument_bytes),
        };
        let runtime = named.max_runtime_ms.or(self.default.max_runtime_ms);
        ToolLimits {
            runtime: runtime.map(Duration::from_millis),
            result_bytes: named.max_result_bytes.or(self.default.max_result_bytes).unwrap_or(limits.result_bytes),
            argument_bytes: named
                .max_argument_bytes
                .or(self.default.max_argument_bytes)
                .unwrap_or(limits.argument_bytes),
        }
    }
}

/// The size limits of a call. `max_argument_bytes` and `max_result_bytes` of a budget replace `argument_bytes` and
/// `result_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PolicyLimits {
    /// The longest call id, in bytes.
    #[serde(deserialize_with = "parse::at_least_one")]
    pub call_id_bytes: usize,
    /// The longest arguments, in bytes.
    #[serde(deserialize_with = "parse::at_least_one")]
    pub argument_bytes: usize,
    /// The deepest nesting of arguments.
    #[serde(deserialize_with = "parse::at_least_one")]
    pub argument_depth: usize,
    /// The longest result, in bytes.
    #[serde(deserialize_with = "parse::at_least_one")]
    pub result_bytes: usize,
}

impl Default for PolicyLimits {
    fn default() -> Self {
        Self { call_id_bytes: 128, argument_bytes: 8 * 1024, argument_depth: 64, result_bytes: 32 * 1024 }
    }
}
