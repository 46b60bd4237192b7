//! [`Approvals`]: the people who may decide on a waiting call, and the number of approvals that the call needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::call::{Decider, DecisionError};
use crate::error::Problem;
use crate::policy::parse;
use crate::policy::problem::unknown;
use crate::tool::ToolEffect;

/// The maximum number of approvals that a call can need. The stored document of the call holds them all.
const MAX_REQUIRED_APPROVALS: u32 = 16;

/// The rules for deciders: for all calls, by effect and by tool. If several tables have a key, the most specific table
/// applies. `rules` can only raise the number of approvals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Approvals {
    /// Whether the principal of a run may decide on the run's calls; `false` by default. A call waits only in a runner
    /// with [`approvals(true)`](crate::runner::RunnerBuilder::approvals).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_calls: Option<bool>,
    /// A decider needs one of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeSet<String>>,
    /// A decider is one of these principals.
    #[serde(deserialize_with = "parse::principals", skip_serializing_if = "Option::is_none")]
    pub principals: Option<BTreeSet<String>>,
    /// How many different deciders have to approve a call; 1 by default.
    #[serde(deserialize_with = "required", skip_serializing_if = "Option::is_none")]
    pub required: Option<u32>,
    /// The deciders for each effect.
    #[serde(deserialize_with = "parse::table_map")]
    pub effects: BTreeMap<ToolEffect, Deciders>,
    /// The deciders for each tool.
    #[serde(deserialize_with = "parse::named_map")]
    pub tools: BTreeMap<String, Deciders>,
    /// The number of approvals of a call that waits because of a rule, by the name of the rule.
    #[serde(deserialize_with = "parse::table_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, ForRule>,
}

/// The rules for the deciders of one effect or one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Deciders {
    /// Whether the principal of a run may decide on the run's calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_calls: Option<bool>,
    /// A decider needs one of these roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<BTreeSet<String>>,
    /// A decider is one of these principals.
    #[serde(deserialize_with = "parse::principals", skip_serializing_if = "Option::is_none")]
    pub principals: Option<BTreeSet<String>>,
    /// How many different deciders have to approve a call.
    #[serde(deserialize_with = "required", skip_serializing_if = "Option::is_none")]
    pub required: Option<u32>,
}

/// The number of approvals of a call that waits because of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForRule {
    /// How many different deciders have to approve a call.
    #[serde(deserialize_with = "number")]
    pub required: u32,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("a call that waits needs at least one approval; write 1 or more, or leave it out")),
        number if number > MAX_REQUIRED_APPROVALS => {
            Err(D::Error::custom(format!("a call can need at most {MAX_REQUIRED_APPROVALS} approvals")))
        }
        number => Ok(number),
    }
}

fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    number(deserializer).map(Some)
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
        // A decider's name has no outer white space, so the run's principal is compared without it.
        if call.principal.map(str::trim) == Some(decider.principal()) && !own_calls {
            return Some(DecisionError::OwnCall);
        }
        if self.principals_of(call.tool, call.effect).is_some_and(|named| !named.contains(decider.principal())) {
            return Some(DecisionError::DeciderPrincipal);
        }
        let has_one = |roles: &BTreeSet<String>| decider.roles().iter().any(|role| roles.contains(&**role));
        roles.is_some_and(|roles| !has_one(roles)).then_some(DecisionError::DeciderRole)
    }

    /// Returns whether a run's principal may decide on the run's calls of a tool, and the roles for deciders. A decider
    /// needs one of these roles.
    pub(super) fn of(&self, tool: &str, effect: ToolEffect) -> (bool, Option<&BTreeSet<String>>) {
        let own_calls = self.most_specific(tool, effect, |deciders| deciders.own_calls).or(self.own_calls);
        let roles = self.most_specific(tool, effect, |deciders| deciders.roles.as_ref()).or(self.roles.as_ref());
        (own_calls == Some(true), roles)
    }

    /// Returns the principals who may decide. `None` if the policy names none.
    pub(super) fn principals_of(&self, tool: &str, effect: ToolEffect) -> Option<&BTreeSet<String>> {
        self.most_specific(tool, effect, |deciders| deciders.principals.as_ref()).or(self.principals.as_ref())
    }

    /// Returns how many deciders have to approve a call of a tool that waits because of `rules`.
    pub(super) fn required<'r>(&self, tool: &str, effect: ToolEffect, rules: impl IntoIterator<Item = &'r str>) -> u32 {
        let general = self.most_specific(tool, effect, |deciders| deciders.required).or(self.required).unwrap_or(1);
        let of_rules = rules.into_iter().filter_map(|rule| self.rules.get(rule)).map(|rule| rule.required);
        of_rules.fold(general, u32::max)
    }

    /// Returns the highest number of deciders that any call of a tool can need.
    pub(crate) fn most_required(&self, tool: &str, effect: ToolEffect) -> u32 {
        let of_others = |rule: &&str| rule.starts_with("tools.") && !rule.starts_with(&format!("tools.{tool}."));
        self.required(tool, effect, self.rules.keys().map(String::as_str).filter(|rule| !of_others(rule)))
    }

    /// Whether some call can need several approvals.
    pub(super) fn can_require_several(&self) -> bool {
        let particular = self.effects.values().chain(self.tools.values()).filter_map(|deciders| deciders.required);
        let rules = self.rules.values().map(|rule| rule.required);
        particular.chain(rules).chain(self.required).any(|number| number > 1)
    }

    /// Returns the value of a key in the table of the tool, else in the table of the effect.
    fn most_specific<'a, T>(
        &'a self,
        tool: &str,
        effect: ToolEffect,
        of: impl Fn(&'a Deciders) -> Option<T>,
    ) -> Option<T> {
        [self.tools.get(tool), self.effects.get(&effect)].into_iter().flatten().find_map(of)
    }

    /// Whether the principal of a run may decide on the run's calls of a tool.
    pub(crate) fn has_own_calls(&self, tool: &str, effect: ToolEffect) -> bool {
        self.of(tool, effect).0
    }

    /// Returns all roles in these tables.
    pub(super) fn named_roles(&self) -> impl Iterator<Item = &String> {
        let particular = self.effects.values().chain(self.tools.values());
        particular.filter_map(|deciders| deciders.roles.as_ref()).chain(&self.roles).flatten()
    }

    /// Returns all principals in these tables.
    pub(super) fn named_principals(&self) -> impl Iterator<Item = &String> {
        let particular = self.effects.values().chain(self.tools.values());
        particular.filter_map(|deciders| deciders.principals.as_ref()).chain(&self.principals).flatten()
    }

    /// Reports tables that decide nothing, refuse every decider or require more deciders than they name, and keys of
    /// `approvals.rules` that name no rule. `rules` contains the rules that can require an approval, `tools` each tool
    /// that a run may call or that a table names.
    pub(super) fn check(&self, rules: &BTreeSet<String>, tools: &[GuardedTool<'_>], problems: &mut Vec<Problem>) {
        let effects = self.effects.iter().map(|(effect, deciders)| (format!("approvals.effects.{effect}"), deciders));
        let of_tools = self.tools.iter().map(|(tool, deciders)| (format!("approvals.tools.{tool}"), deciders));
        let general = Deciders {
            own_calls: self.own_calls,
            roles: self.roles.clone(),
            principals: self.principals.clone(),
            required: self.required,
        };
        let mut of = |path: String, deciders: &Deciders, is_general: bool| {
            if let Some(number) = deciders.required.filter(|number| !(1..=MAX_REQUIRED_APPROVALS).contains(number)) {
                let message =
                    format!("{number} approvals cannot be required; write a number from 1 to {MAX_REQUIRED_APPROVALS}");
                problems.push(Problem::policy(format!("{path}.required"), message));
            }
            if deciders.principals.as_ref().is_some_and(BTreeSet::is_empty) {
                let message = "an empty list admits nobody; add a principal or remove the key";
                problems.push(Problem::policy(format!("{path}.principals"), message.to_owned()));
            }
            if deciders.roles.as_ref().is_some_and(BTreeSet::is_empty) {
                let message = "an empty list admits nobody; add a role or remove the key";
                problems.push(Problem::policy(format!("{path}.roles"), message.to_owned()));
            }
            if !is_general && *deciders == Deciders::default() {
                let message = "this decides nothing; write `own_calls`, `roles`, `principals` or `required`";
                problems.push(Problem::policy(path, message.to_owned()));
            }
        };
        of("approvals".to_owned(), &general, true);
        effects.chain(of_tools).for_each(|(path, deciders)| of(path, deciders, false));
        for rule in self.rules.keys() {
            let path = format!("approvals.rules.{rule}");
            let names = rules.iter().map(String::as_str);
            unknown("rule that requires an approval", path, rule, rules.contains(rule), names, problems);
        }
        let never_asks = |tool: &&GuardedTool<'_>| tool.rules.is_empty() && tool.effect == ToolEffect::ReadOnly;
        for GuardedTool { name, .. } in
            tools.iter().filter(never_asks).filter(|tool| self.tools.contains_key(tool.name))
        {
            let message = format!(
                "this decides nothing: no rule requires an approval of `{name}`, which is `read_only`; add it to \
                 `require_approval_for_tools`, or remove the table"
            );
            problems.push(Problem::policy(format!("approvals.tools.{name}"), message));
        }
        self.check_numbers(tools, problems);
    }

    /// Reports each required number of approvals that is higher than the number of principals who may decide. The
    /// number for a tool includes the rules that can require an approval of its calls.
    fn check_numbers(&self, tools: &[GuardedTool<'_>], problems: &mut Vec<Problem>) {
        let mut seen = BTreeSet::new();
        // Reports each pair of a list of principals and a number only once.
        let mut compare = |path: String, (of, named): (String, Option<&BTreeSet<String>>), needed: u32| {
            let count = named.map_or(usize::MAX, BTreeSet::len);
            let is_more = count > 0 && usize::try_from(needed).is_ok_and(|needed| needed > count);
            if is_more && seen.insert((of, needed)) {
                let message = format!(
                    "{needed} deciders have to approve, and `principals` names {count}; name more, or lower `required`"
                );
                problems.push(Problem::policy(path, message));
            }
        };
        let general = || ("approvals".to_owned(), self.principals.as_ref());
        compare("approvals".to_owned(), general(), self.required.unwrap_or(1));
        for (effect, deciders) in &self.effects {
            let path = format!("approvals.effects.{effect}");
            let named = deciders.principals.as_ref().map_or_else(general, |named| (path.clone(), Some(named)));
            compare(path, named, deciders.required.or(self.required).unwrap_or(1));
        }
        for GuardedTool { name, effect, rules } in tools {
            if rules.is_empty() && !self.tools.contains_key(*name) {
                continue;
            }
            let path = format!("approvals.tools.{name}");
            let of_tool = self.tools.get(*name).and_then(|deciders| deciders.principals.as_ref());
            let of_effect = self.effects.get(effect).and_then(|deciders| deciders.principals.as_ref());
            let named = match (of_tool, of_effect) {
                (Some(named), _) => (path.clone(), Some(named)),
                (None, Some(named)) => (format!("approvals.effects.{effect}"), Some(named)),
                (None, None) => general(),
            };
            compare(path, named, self.required(name, *effect, rules.iter().map(String::as_str)));
        }
    }
}

/// A tool whose calls can wait for a person.
pub(super) struct GuardedTool<'a> {
    pub(super) name: &'a str,
    /// The effect that the policy gives the tool.
    pub(super) effect: ToolEffect,
    /// The rules that can require an approval of its calls.
    pub(super) rules: BTreeSet<String>,
}
