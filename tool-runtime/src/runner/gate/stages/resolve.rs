//! Resolve: finds the tool with a name, if the run may use it.

use std::sync::Arc;

use crate::call::{Caller, Decision, NO_SUCH_TOOL, Outcome, Verdict};
use crate::catalog::Entry;
use crate::runner::Run;
use crate::runner::gate::ending::Stop;
use crate::runner::run::offer;
use crate::tool::is_graph;

/// The reason why a name does not resolve to a tool.
pub(super) struct Unresolved {
    pub(super) decision: Option<Decision>,
    pub(super) stop: Stop,
}

/// Finds the tool and checks the run's tool list and the policy, before the arguments are read. Also returns the
/// policy's decision.
///
/// `found` is the tool of this name, if it was looked up before.
#[inline]
pub(super) fn resolve(
    run: &Run,
    name: &str,
    found: Option<&Arc<Entry>>,
) -> Result<(Arc<Entry>, Decision), Box<Unresolved>> {
    let shared = run.shared();
    // The refusal is the same whether or not the graph exists.
    if is_graph(name) && matches!(run.options().caller, Caller::Graph { .. }) {
        let decision = Some(Decision { verdict: Verdict::Deny, rule: "graph.depth".into() });
        let message = "A graph cannot call a graph. The call did not run: use the tools that you have.";
        let stop = Stop::new(Outcome::PolicyDenied).message(message);
        return Err(Box::new(Unresolved { decision, stop }));
    }
    let Some(entry) = found.or_else(|| shared.catalog.entry(name)) else {
        return Err(Box::new(Unresolved { decision: None, stop: Stop::new(Outcome::Unavailable) }));
    };
    // The policy decides before the offer is checked, so that a denial is recorded with its rule.
    let decision = run.ask(|policy, context| policy.admit(context, &entry.policy_resource()));
    if shared.effective(decision.verdict) != Verdict::Deny {
        offer::check(run.remembered(), run.catalog(), name)
            .map_err(|stop| Box::new(Unresolved { decision: None, stop }))?;
        return Ok((Arc::clone(entry), decision));
    }
    let mut stop = Stop::new(Outcome::PolicyDenied);
    // The model must not learn that a tool outside the view of the run exists.
    if run.catalog().get(name).is_none() {
        stop = stop.message(NO_SUCH_TOOL);
        stop.concealed = true;
    }
    let decision = Some(Decision { verdict: Verdict::Deny, rule: decision.rule });
    Err(Box::new(Unresolved { decision, stop }))
}
