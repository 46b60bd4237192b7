//! [`BuildProblems`]: the reasons why a runner cannot be built.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{BuildError, Problem};

/// All problems that [`RunnerBuilder::build`](super::RunnerBuilder::build) found.
#[derive(Default)]
pub(super) struct BuildProblems {
    pub(super) policy: Vec<Problem>,
    /// The capabilities without an adapter, each with the tools that need it.
    pub(super) unbound: BTreeMap<&'static str, BTreeSet<String>>,
    /// The capabilities in `unbound` that are connections, which only a broker can resolve.
    pub(super) connections: BTreeSet<&'static str>,
    /// The problems of the look-ups of names.
    pub(super) names: Vec<String>,
    /// The rules that can require an approval, if [`RunnerBuilder::approvals`](super::RunnerBuilder::approvals) was not
    /// called.
    pub(super) asks: Vec<String>,
}

impl BuildProblems {
    /// Returns all problems as one error, those of the policy first; `Ok` if there is none.
    pub(super) fn into_result(self) -> Result<(), BuildError> {
        let mut problems = self.policy;
        for (capability, tools) in self.unbound {
            let names: Vec<_> = tools.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            let message = if self.connections.contains(capability) {
                format!(
                    "`{capability}` needs an account, {names} borrows it, and there is no broker; write `.broker(..)` with a `ConnectionBroker`"
                )
            } else {
                format!(
                    "the capability `{capability}` is not bound, and {names} needs it; write `Capabilities::with::<dyn {capability}>(..)`"
                )
            };
            problems.push(Problem::of("capability_unbound", message, None).with_tools(tools));
        }
        problems.extend(self.names.into_iter().map(|message| Problem::of("names_invalid", message, None)));
        if !self.asks.is_empty() {
            let rules = self.asks.join("; ");
            let message = format!(
                "the policy can require an approval ({rules}), and the runner has no setting for approvals; call \
                 `RunnerBuilder::approvals(true)`, or `approvals(false)` to hide and deny such calls"
            );
            problems.push(Problem::of("approvals_undecided", message, None));
        }
        if problems.is_empty() { Ok(()) } else { Err(BuildError::new(problems)) }
    }
}
