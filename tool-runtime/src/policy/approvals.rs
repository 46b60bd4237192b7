//! The rules for deciding on calls that wait for a person.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::call::{Decider, DecisionError};
use crate::error::Problem;
use crate::policy::parse;
use crate::tool::ToolEffect;

/// The rules for deciders: in general, by effect and by tool. For each key, the most specific table that has it
/// applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Approvals {
    /// The principal of a run may decide on its calls. The runner needs [`approvals(true)`](crate::runner::RunnerBuilder::approvals)
    /// as well, or no call waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_calls: Option<bool>,
    /// The decider has one of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeSet<String>>,
    /// For calls of an effect.
    #[serde(deserialize_with = "parse::table_map")]
    pub effects: BTreeMap<ToolEffect, Deciders>,
    /// For calls of a tool.
    #[serde(deserialize_with = "parse::named_map")]
    pub tools: BTreeMap<String, Deciders>,
}

/// The rules for the deciders of some calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Deciders {
    /// The principal of a run may decide on its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_calls: Option<bool>,
    /// The decider has one of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeSet<String>>,
}

/// The properties of a call on which its possible deciders depend.
pub(crate) struct Decided<'a> {
    pub(crate) tool: &'a str,
    pub(crate) effect: ToolEffect,
    pub(crate) principal: Option<&'a str>,
    pub(crate) tenant: Option<&'a str>,
}

impl Approvals {
    /// Returns why the decider may not decide, `None` if they may.
    pub(super) fn bars(&self, decider: &Decider, call: &Decided<'_>) -> Option<DecisionError> {
        let (own_calls, roles) = self.of(call.tool, call.effect);
        if call.principal == Some(decider.principal()) && !own_calls {
            return Some(DecisionError::OwnCall);
        }
        let has_one = |roles: &BTreeSet<String>| decider.roles().iter().any(|role| roles.contains(&**role));
        roles.is_some_and(|roles| !has_one(roles)).then_some(DecisionError::DeciderRole)
    }

    /// Returns whether a run's principal may decide on its calls of a tool, and the roles for deciders, one of which is
    /// enough.
    pub(super) fn of(&self, tool: &str, effect: ToolEffect) -> (bool, Option<&BTreeSet<String>>) {
        let particular = [self.tools.get(tool), self.effects.get(&effect)];
        let own_calls = particular.iter().flatten().find_map(|deciders| deciders.own_calls).or(self.own_calls);
        let roles = particular.iter().flatten().find_map(|deciders| deciders.roles.as_ref()).or(self.roles.as_ref());
        (own_calls == Some(true), roles)
    }

    /// Whether the principal of a run may decide on its calls of a tool.
    pub(crate) fn has_own_calls(&self, tool: &str, effect: ToolEffect) -> bool {
        self.of(tool, effect).0
    }

    /// The roles of deciders.
    pub(super) fn named_roles(&self) -> impl Iterator<Item = &String> {
        let particular = self.effects.values().chain(self.tools.values());
        particular.filter_map(|deciders| deciders.roles.as_ref()).chain(&self.roles).flatten()
    }

    /// Reports tables that decide nothing or refuse every decider.
    pub(super) fn check(&self, problems: &mut Vec<Problem>) {
        let effects = self.effects.iter().map(|(effect, deciders)| (format!("approvals.effects.{effect}"), deciders));
        let tools = self.tools.iter().map(|(tool, deciders)| (format!("approvals.tools.{tool}"), deciders));
        let general = Deciders { own_calls: self.own_calls, roles: self.roles.clone() };
        let mut of = |path: String, deciders: &Deciders, is_general: bool| {
            if deciders.roles.as_ref().is_some_and(BTreeSet::is_empty) {
                let message = "an empty list admits nobody; add a role or remove the key";
                problems.push(Problem::policy(format!("{path}.roles"), message.to_owned()));
            }
            if !is_general && *deciders == Deciders::default() {
                let message = "this decides nothing; write `own_calls` or `roles`";
                problems.push(Problem::policy(path, message.to_owned()));
            }
        };
        of("approvals".to_owned(), &general, true);
        effects.chain(tools).for_each(|(path, deciders)| of(path, deciders, false));
    }
}
