//! Gathers the rules of all tables of a policy by tool name, so that a decision is one look-up.

use std::fmt;
use std::sync::Arc;

use crate::policy::argument_rule::ArgumentRule;
use crate::policy::budget::ToolLimits;
use crate::policy::data::{Given, PolicyData};
use crate::policy::names::NameMap;
use crate::policy::resource::PolicyContext;
use crate::policy::server_rule::{ServerRule, server_of};
use crate::tool::{Hash, ToolEffect, graph, is_graph};

pub(super) fn index(data: &PolicyData) -> NameMap<Compiled> {
    let mut index: NameMap<Compiled> = NameMap::default();
    for name in data.allowed_tools.iter().filter(|name| !is_graph(name)) {
        index.entry(name.as_str().into()).or_default().allowed = true;
    }
    for name in &data.allowed_graphs {
        index.entry(graph(name).into()).or_default().allowed = true;
    }
    for name in &data.require_approval_for_tools {
        index.entry(name.as_str().into()).or_default().approval = true;
    }
    let mut grant = |who: PolicyResource, given: Given<'_>| {
        let who = Arc::new(who);
        let mut add = |name: &str, allow| {
            let granted = Granted { who: Arc::clone(&who), allow };
            index.entry(name.into()).or_default().grants.push(granted);
        };
        // Only `allowed_graphs` allows a graph.
        given.tools.iter().filter(|name| !is_graph(name)).for_each(|name| add(name, true));
        given.graphs.iter().for_each(|name| add(&graph(name), true));
        given.denied.iter().for_each(|name| add(name, false));
    };
    for (role, to) in &data.roles {
        grant(PolicyResource::Role(role.clone()), to.given());
    }
    for (principal, to) in &data.principals {
        grant(PolicyResource::Principal(principal.clone()), to.given());
    }
    for (name, values) in &data.attributes {
        for (value, to) in values {
            grant(PolicyResource::Attribute(name.clone(), value.clone()), to.given());
        }
    }
    for (tenant, to) in &data.tenants {
        grant(PolicyResource::Tenant(tenant.clone()), to.given());
        for (role, to) in &to.roles {
            grant(PolicyResource::TenantRole(tenant.clone(), role.clone()), to.given());
        }
    }
    for (name, rule) in &data.tools {
        let compiled = index.entry(name.as_str().into()).or_default();
        compiled.effect = rule.effect;
        compiled.pin = rule.pin;
        compiled.arguments.clone_from(&rule.arguments);
    }
    for name in data.budgets.tools.keys() {
        index.entry(name.as_str().into()).or_default().limits = Some(data.limits_of(Some(name)));
    }
    for (name, compiled) in &mut index {
        let Some((id, rule)) = data.server_of(name) else { continue };
        compiled.effect = compiled.effect.or(rule.effect);
        compiled.limits = Some(data.limits_of(Some(name)));
        compiled.disabled = (!rule.enabled).then(|| format!("servers.{id}.enabled").into());
    }
    index
}

impl PolicyData {
    /// Returns the rule for a tool's server.
    fn server_of(&self, tool: &str) -> Option<(&String, &ServerRule)> {
        self.servers.get_key_value(server_of(tool)?)
    }

    /// Returns the limits of one call of this tool; for `None`, of any tool that no rule names.
    pub(super) fn limits_of(&self, name: Option<&str>) -> ToolLimits {
        let server = name.and_then(|name| self.server_of(name)).map(|(_, rule)| rule.budget());
        self.budgets.limits_of(name, server.unwrap_or_default(), &self.limits)
    }
}

/// The policy's rules for one name, gathered from all its tables.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) allowed: bool,
    pub(super) approval: bool,
    pub(super) effect: Option<ToolEffect>,
    pub(super) pin: Option<Hash>,
    pub(super) grants: Vec<Granted>,
    pub(super) arguments: Vec<ArgumentRule>,
    pub(super) limits: Option<ToolLimits>,
    /// The rule that disables the tool's server.
    pub(super) disabled: Option<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Granted {
    pub(super) who: Arc<PolicyResource>,
    pub(super) allow: bool,
}

/// The runs to which a table of the policy applies.
#[derive(Debug)]
pub(super) enum PolicyResource {
    Role(String),
    Principal(String),
    Attribute(String, String),
    Tenant(String),
    TenantRole(String, String),
}

impl PolicyResource {
    /// Whether the table applies to the run.
    pub(super) fn is(&self, context: &PolicyContext<'_>) -> bool {
        let has_role = |role: &str| context.roles.iter().any(|held| **held == *role);
        match self {
            Self::Role(role) => has_role(role),
            Self::Principal(principal) => context.principal == Some(principal),
            Self::Attribute(name, value) => {
                context.attributes.iter().any(|(held, of)| **held == **name && **of == **value)
            }
            Self::Tenant(tenant) => context.tenant == Some(tenant),
            Self::TenantRole(tenant, role) => context.tenant == Some(tenant) && has_role(role),
        }
    }
}

/// Writes the path of the table in the policy.
impl fmt::Display for PolicyResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Role(role) => write!(f, "roles.{role}"),
            Self::Principal(principal) => write!(f, "principals.{principal}"),
            Self::Attribute(name, value) => write!(f, "attributes.{name}.{value}"),
            Self::Tenant(tenant) => write!(f, "tenants.{tenant}"),
            Self::TenantRole(tenant, role) => write!(f, "tenants.{tenant}.roles.{role}"),
        }
    }
}
