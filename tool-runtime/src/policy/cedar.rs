//! Policies in the Cedar language. They narrow the rest of the policy and never allow more. If the engine fails on a
//! call, the call is denied. Only this file and its folder name `cedar_policy`.

mod check;
mod kind;
mod nesting;
mod parse;
mod reads;
mod request;
mod schema;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use cedar_policy::{ActionConstraint, EntityUid, PolicySet, ResourceConstraint};
use serde::{Deserialize, Serialize};

use crate::contain::attempted;
use crate::policy::cedar::reads::Reads;
use crate::policy::cedar::request::Types;
use crate::policy::parse::Table;
use crate::tool::ToolEffect;

/// The size of the stack on which the recursive engine runs, in bytes. It is enough, because [`nesting`] limits the
/// depth of the policies' text.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// The policies, ready to decide. Cheap to clone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Table<CedarTable>", into = "CedarTable")]
pub(crate) struct CedarRules(Arc<Ready>);

struct Ready {
    text: String,
    all: PolicySet,
    /// The policies for a call with its arguments.
    frozen: Sets,
    /// The policies for a decision before the arguments are read, without conditions on arguments.
    admission: Sets,
    reads: Reads,
    types: Types,
}

/// Policies for one stage of a call, grouped by their consequence.
struct Sets {
    /// Policies that permit, and policies that forbid.
    decide: PolicySet,
    /// Policies that forbid until a person approves.
    ask: PolicySet,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CedarTable {
    policies: String,
}

impl CedarRules {
    /// Whether a policy reads the arguments of calls.
    pub(super) fn reads_arguments(&self) -> bool {
        self.0.reads.arguments
    }

    /// Whether a policy reads this argument.
    pub(super) fn reads(&self, argument: &str) -> bool {
        self.0.reads.whole || self.0.reads.names.contains(argument)
    }

    /// Returns the names of the rules that can require an approval.
    pub(crate) fn asks(&self) -> impl Iterator<Item = String> {
        self.0.frozen.ask.policies().map(|policy| format!("cedar:{}", policy.id()))
    }

    /// Whether the policy of this rule can require an approval of a call of the tool, judged by the action and resource
    /// in the scope of the policy.
    pub(super) fn can_ask(&self, rule: &str, tool: &str, effect: ToolEffect) -> bool {
        let groups = [tool, effect.as_str(), "call"];
        let is_group = |uid: &EntityUid| groups.contains(&uid.id().unescaped());
        let is_tool = |uid: &EntityUid| uid.id().unescaped() == tool;
        self.0.frozen.ask.policies().filter(|policy| format!("cedar:{}", policy.id()) == rule).any(|policy| {
            let acts = match policy.action_constraint() {
                ActionConstraint::Any => true,
                ActionConstraint::In(uids) => uids.iter().any(is_group),
                ActionConstraint::Eq(uid) => is_tool(&uid),
            };
            let names = match policy.resource_constraint() {
                ResourceConstraint::In(uid) | ResourceConstraint::Eq(uid) | ResourceConstraint::IsIn(_, uid) => {
                    is_tool(&uid)
                }
                ResourceConstraint::Any | ResourceConstraint::Is(_) => true,
            };
            acts && names
        })
    }

    /// Returns the roles that policies name.
    pub(super) fn roles(&self) -> &BTreeSet<String> {
        &self.0.reads.roles
    }

    /// Returns the attributes of principals that policies read.
    pub(super) fn attributes(&self) -> &BTreeSet<String> {
        &self.0.reads.attributes
    }

    /// Returns the labels that policies name.
    pub(super) fn labels(&self) -> &BTreeSet<String> {
        &self.0.reads.labels
    }
}

/// Runs the engine on a stack of [`STACK_BYTES`]. `None` if the engine panics.
fn on_own_stack<T>(work: impl FnOnce() -> T) -> Option<T> {
    stacker::grow(STACK_BYTES, || attempted(work)).ok()
}

impl TryFrom<Table<CedarTable>> for CedarRules {
    type Error = String;

    fn try_from(Table(written): Table<CedarTable>) -> Result<Self, String> {
        let ready = parse::ready(written.policies).map_err(|error| format!("`cedar.policies`: {error}"))?;
        Ok(Self(Arc::new(ready)))
    }
}

impl From<CedarRules> for CedarTable {
    fn from(rules: CedarRules) -> Self {
        Self { policies: rules.0.text.clone() }
    }
}

impl PartialEq for CedarRules {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl fmt::Debug for CedarRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CedarRules").field("policies", &self.0.text).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
