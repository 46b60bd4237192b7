//! [`RunnerError`]: why a runner cannot be built.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use crate::policy::PolicyProblem;

/// Why a runner cannot be built: all problems together.
#[derive(Debug)]
pub struct RunnerError {
    pub(super) policy: Vec<PolicyProblem>,
    pub(super) unbound: BTreeMap<&'static str, BTreeSet<String>>,
    /// The unbound capabilities that a broker opens.
    pub(super) connections: BTreeSet<&'static str>,
    /// The problems of the look-ups of names.
    pub(super) names: Vec<String>,
    /// The rules that can ask for an approval, if [`RunnerBuilder::approvals`](super::RunnerBuilder::approvals) was not
    /// called.
    pub(super) asks: Vec<String>,
}

impl RunnerError {
    /// Returns the stable code of the gravest kind of problem: `policy_problem`, `capability_unbound`, `names_unfit` or
    /// `approvals_undecided`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        if !self.policy.is_empty() {
            "policy_problem"
        } else if !self.unbound.is_empty() {
            "capability_unbound"
        } else if !self.names.is_empty() {
            "names_unfit"
        } else {
            "approvals_undecided"
        }
    }

    /// Returns the problems of the policy.
    #[must_use]
    pub fn policy_problems(&self) -> &[PolicyProblem] {
        &self.policy
    }

    /// Returns the capabilities that are not bound, each with the names of the tools that need it.
    pub fn unbound(&self) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &str>)> {
        self.unbound.iter().map(|(capability, tools)| (*capability, tools.iter().map(String::as_str)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.policy.is_empty() && self.unbound.is_empty() && self.names.is_empty() && self.asks.is_empty()
    }
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<_> = self.policy.iter().map(ToString::to_string).collect();
        for (capability, tools) in self.unbound() {
            let tools: Vec<_> = tools.map(|name| format!("`{name}`")).collect();
            let tools = tools.join(", ");
            lines.push(if self.connections.contains(capability) {
                format!(
                    "`{capability}` needs an account, {tools} borrows it, and there is no broker; write `.broker(..)` with a `ConnectionBroker`"
                )
            } else {
                format!(
                    "the capability `{capability}` is not bound, and {tools} needs it; write `Capabilities::with::<dyn {capability}>(..)`"
                )
            });
        }
        lines.extend(self.names.iter().cloned());
        if !self.asks.is_empty() {
            let rules = self.asks.join("; ");
            lines.push(format!(
                "the policy can ask for an approval ({rules}), and the runner has no setting for approvals; call \
                 `RunnerBuilder::approvals(true)`, or `approvals(false)` to hide and deny such calls"
            ));
        }
        f.write_str(&lines.join("\n"))
    }
}

// No `source`: `policy_problems` and `unbound` list the problems.
impl Error for RunnerError {}
