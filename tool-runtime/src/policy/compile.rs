//! Gathers the rules of all tables of a policy by tool name, so that a decision is one look-up.

use crate::policy::argument_rule::ArgumentRule;
use crate::policy::budget::ToolLimits;
use crate::policy::data::PolicyData;
use crate::policy::names::NameMap;
use crate::tool::{Hash, ToolEffect};

pub(super) fn index(data: &PolicyData) -> NameMap<Compiled> {
    let mut index: NameMap<Compiled> = NameMap::default();
    for name in &data.allowed_tools {
        index.entry(name.as_str().into()).or_default().allowed = true;
    }
    for name in &data.require_approval_for_tools {
        index.entry(name.as_str().into()).or_default().approval = true;
    }
    for (party, grants) in [
        (Party::Role, &data.roles),
        (Party::Principal, &data.principals),
        (Party::Tenant, &data.tenants),
        (Party::Caller, &data.callers),
    ] {
        for (id, grant) in grants {
            for (names, allow) in [(&grant.allowed_tools, true), (&grant.denied_tools, false)] {
                for name in names {
                    let granted = Granted { party, id: id.as_str().into(), allow };
                    index.entry(name.as_str().into()).or_default().grants.push(granted);
                }
            }
        }
    }
    for (name, rule) in &data.tools {
        let compiled = index.entry(name.as_str().into()).or_default();
        compiled.effect = rule.effect;
        compiled.pin = rule.pin;
        compiled.arguments.clone_from(&rule.arguments);
    }
    for name in data.budgets.tools.keys() {
        index.entry(name.as_str().into()).or_default().limits = Some(data.budgets.limits_of(Some(name), &data.limits));
    }
    index
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
}

#[derive(Debug)]
pub(super) struct Granted {
    pub(super) party: Party,
    pub(super) id: Box<str>,
    pub(super) allow: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Party {
    Role,
    Principal,
    Tenant,
    Caller,
}

impl Party {
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::Principal => "principals",
            Self::Tenant => "tenants",
            Self::Caller => "callers",
        }
    }
}
