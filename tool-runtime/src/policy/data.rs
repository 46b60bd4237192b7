//! [`PolicyData`]: a policy as written in TOML or JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::policy::approvals::Approvals;
use crate::policy::argument_rule::ArgumentRule;
use crate::policy::budget::{Budgets, PolicyLimits};
use crate::policy::cedar::CedarRules;
use crate::policy::label::LabelRule;
use crate::policy::loop_guard::LoopThresholds;
use crate::policy::mcp_rule::McpRule;
use crate::policy::notice_rule::NoticeRule;
use crate::policy::parse;
use crate::policy::record_rule::RecordRule;
use crate::policy::rule_verdict::RuleVerdict;
use crate::policy::server_rule::ServerRule;
use crate::tool::{Hash, ToolEffect};

/// A policy as data. Every key is optional; a policy without keys denies everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub(crate) struct PolicyData {
    /// Tools that every run may call, by exact name. A tool that is not named is denied.
    #[serde(deserialize_with = "parse::names")]
    pub allowed_tools: BTreeSet<String>,
    /// Graphs that every run may call, by exact name without `graph__`. A graph that is not named is denied.
    #[serde(deserialize_with = "parse::names")]
    pub allowed_graphs: BTreeSet<String>,
    /// Effects whose calls wait for a person.
    pub require_approval_for_effects: BTreeSet<ToolEffect>,
    /// Tools whose calls wait for a person.
    #[serde(deserialize_with = "parse::names")]
    pub require_approval_for_tools: BTreeSet<String>,
    /// The rules for deciders.
    #[serde(deserialize_with = "parse::table")]
    pub approvals: Approvals,
    /// Limits of calls, runs, graphs, principals and tenants.
    #[serde(deserialize_with = "parse::table")]
    pub budgets: Budgets,
    /// Tools and graphs that a role adds and removes.
    #[serde(deserialize_with = "parse::table_map")]
    pub roles: BTreeMap<String, Grant>,
    /// Tools and graphs that are added and removed for one principal.
    #[serde(deserialize_with = "parse::table_map")]
    pub principals: BTreeMap<String, Grant>,
    /// Tools and graphs for principals that have a value of an attribute: `attributes.NAME.VALUE`.
    #[serde(deserialize_with = "parse::table_maps")]
    pub attributes: BTreeMap<String, BTreeMap<String, Grant>>,
    /// Tools and graphs for one tenant, and for a role within it.
    #[serde(deserialize_with = "parse::table_map")]
    pub tenants: BTreeMap<String, TenantGrant>,
    /// Limits by caller: `direct` (the agent loop or the application), `graph` (any graph that runs as a tool),
    /// `graph:NAME` (that graph).
    #[serde(deserialize_with = "parse::table_map")]
    pub callers: BTreeMap<String, Ceiling>,
    /// The verdict on calls of tools with a tag.
    #[serde(deserialize_with = "parse::unique_map")]
    pub tags: BTreeMap<String, RuleVerdict>,
    /// The sources of trust labels and their effects.
    #[serde(deserialize_with = "parse::table_map")]
    pub labels: BTreeMap<String, LabelRule>,
    /// Rules for single tools.
    #[serde(deserialize_with = "parse::named_map")]
    pub tools: BTreeMap<String, ToolRule>,
    /// Rules for all tools of a server. A rule for a single tool takes precedence, except over `enabled = false`, which
    /// denies every tool of the server.
    #[serde(deserialize_with = "parse::table_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerRule>,
    /// Whether a call may run without a stored record.
    #[serde(deserialize_with = "parse::table", skip_serializing_if = "RecordRule::is_default")]
    pub records: RecordRule,
    /// Whether malformed arguments may be repaired.
    #[serde(deserialize_with = "parse::table")]
    pub repair: RepairRule,
    /// The numbers of repeated calls at which a run warns and stops; `None` if the policy sets none.
    #[serde(deserialize_with = "parse::some_table", skip_serializing_if = "Option::is_none")]
    pub loop_guard: Option<LoopThresholds>,
    /// The options of the MCP server through which the application offers its tools.
    #[serde(deserialize_with = "parse::table", skip_serializing_if = "McpRule::is_silent")]
    pub mcp: McpRule,
    /// Notices about calls, sent to a webhook. They affect no decision, so they are not part of the policy's revision.
    #[serde(deserialize_with = "parse::some_table", skip_serializing_if = "Option::is_none")]
    pub notices: Option<NoticeRule>,
    /// Size limits, unless the budget of a tool sets its own.
    #[serde(deserialize_with = "parse::table")]
    pub limits: PolicyLimits,
    /// Policies in the Cedar language, which narrow the other rules. An error in a build without the feature `cedar`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cedar: Option<CedarRules>,
    /// The maximum number of `read_only` calls of one turn that run at the same time; 1 by default.
    #[serde(deserialize_with = "parse::at_least_one")]
    pub parallel: usize,
}

impl Default for PolicyData {
    fn default() -> Self {
        Self {
            allowed_tools: BTreeSet::new(),
            allowed_graphs: BTreeSet::new(),
            require_approval_for_effects: BTreeSet::new(),
            require_approval_for_tools: BTreeSet::new(),
            approvals: Approvals::default(),
            budgets: Budgets::default(),
            roles: BTreeMap::new(),
            principals: BTreeMap::new(),
            attributes: BTreeMap::new(),
            tenants: BTreeMap::new(),
            callers: BTreeMap::new(),
            tags: BTreeMap::new(),
            labels: BTreeMap::new(),
            tools: BTreeMap::new(),
            servers: BTreeMap::new(),
            records: RecordRule::default(),
            repair: RepairRule::default(),
            loop_guard: None,
            mcp: McpRule::default(),
            notices: None,
            limits: PolicyLimits::default(),
            cedar: None,
            parallel: 1,
        }
    }
}

/// The tools and graphs that a role, a principal or an attribute adds and removes. A removal takes precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Grant {
    /// Additional allowed tools.
    #[serde(deserialize_with = "parse::names")]
    pub allowed_tools: BTreeSet<String>,
    /// Additional allowed graphs, without `graph__`.
    #[serde(deserialize_with = "parse::names", skip_serializing_if = "BTreeSet::is_empty")]
    pub allowed_graphs: BTreeSet<String>,
    /// Tools denied in any case.
    #[serde(deserialize_with = "parse::names")]
    pub denied_tools: BTreeSet<String>,
}

/// The tools and graphs that a tenant adds and removes, for all of its principals and by role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TenantGrant {
    /// Additional allowed tools.
    #[serde(deserialize_with = "parse::names")]
    pub allowed_tools: BTreeSet<String>,
    /// Additional allowed graphs, without `graph__`.
    #[serde(deserialize_with = "parse::names", skip_serializing_if = "BTreeSet::is_empty")]
    pub allowed_graphs: BTreeSet<String>,
    /// Tools denied in any case.
    #[serde(deserialize_with = "parse::names")]
    pub denied_tools: BTreeSet<String>,
    /// Tools and graphs that a role in this tenant adds and removes.
    #[serde(deserialize_with = "parse::table_map")]
    pub roles: BTreeMap<String, Grant>,
}

/// The additions and removals of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) tools: &'a BTreeSet<String>,
    pub(super) graphs: &'a BTreeSet<String>,
    pub(super) denied: &'a BTreeSet<String>,
}

impl Given<'_> {
    pub(super) fn is_empty(self) -> bool {
        [self.tools, self.graphs, self.denied].into_iter().all(BTreeSet::is_empty)
    }
}

impl Grant {
    pub(super) const fn given(&self) -> Given<'_> {
        Given { tools: &self.allowed_tools, graphs: &self.allowed_graphs, denied: &self.denied_tools }
    }
}

impl TenantGrant {
    /// The additions and removals for every principal in the tenant.
    pub(super) const fn given(&self) -> Given<'_> {
        Given { tools: &self.allowed_tools, graphs: &self.allowed_graphs, denied: &self.denied_tools }
    }
}

/// The tools that a caller may use, out of the tools that its run may use. A caller grants no tools, so a graph never
/// has more tools than its run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ceiling {
    /// The only tools of the caller; if absent, all tools of the run.
    #[serde(deserialize_with = "parse::some_names", skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<BTreeSet<String>>,
    /// Tools denied in any case.
    #[serde(deserialize_with = "parse::names")]
    pub denied_tools: BTreeSet<String>,
}

/// The rules for one tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolRule {
    /// The effect of the tool. It replaces the effect of a discovered tool (`mcp__`), and can only raise the effect of
    /// an authored tool.
    pub effect: Option<ToolEffect>,
    /// The hash of a discovered tool's definition as its server published it. Without a pin, or with another
    /// definition, the tool is denied. An authored tool cannot have one here, because `tools.lock` pins it.
    pub pin: Option<Hash>,
    /// The allowlist of the output. It narrows the allowlist of an authored tool; a discovered tool has no other.
    pub redact: Option<Vec<String>>,
    /// Leaves (scalars and arrays of scalars) of the output that only the model sees, in addition to `redact`. An error
    /// without `redact`. For an authored tool, each has to be on the allowlist of the tool.
    pub model: Vec<String>,
    /// The rules on the tool's arguments, in order.
    pub arguments: Vec<ArgumentRule>,
}

/// The repair of malformed arguments. It is off unless the policy names a repairer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RepairRule {
    /// Repairers that may be tried, by name.
    pub allowed: BTreeSet<String>,
    /// Whether a repaired call waits for a person. `true` by default, because the model did not write that call.
    pub require_approval: bool,
}

impl Default for RepairRule {
    fn default() -> Self {
        Self { allowed: BTreeSet::new(), require_approval: true }
    }
}
