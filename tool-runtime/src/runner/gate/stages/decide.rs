//! Decide: evaluates the policy on the arguments of the call.

use crate::call::{Decision, Outcome, Verdict};
use crate::hydrate::Hydrated;
use crate::runner::Run;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::freeze::FrozenCall;
use crate::store::Key;
use crate::tool::Digested as _;

/// A hydrated call that may run. Only the functions in this file make one.
pub(in crate::runner) struct Permit {
    pub(super) hydrated: Hydrated,
}

/// The policy's decision on frozen arguments. A denial is a [`Stop`] instead.
pub(in crate::runner) enum Judged {
    Permitted(Permit),
    NeedsApproval(Hydrated),
}

/// Evaluates the policy on frozen arguments, unless the decision at admission is final. It is final for most tools, and
/// an evaluation costs as much as parsing the arguments of a small call.
#[inline]
pub(in crate::runner) fn decide(
    open: &mut OpenCall,
    frozen: FrozenCall,
    admitted: Option<Decision>,
) -> Result<Judged, Stop> {
    let FrozenCall { hydrated } = frozen;
    // A repair happens after admission, and a policy can decide differently on repaired arguments.
    let is_final = |_: &Decision| !hydrated.repaired();
    let decision = admitted.filter(is_final).unwrap_or_else(|| judge(open.run(), &hydrated));
    let verdict = open.run().shared().effective(decision.verdict);
    open.draft.decided(Some(decision));
    match verdict {
        Verdict::Allow => Ok(Judged::Permitted(Permit { hydrated })),
        Verdict::RequireApproval => Ok(Judged::NeedsApproval(hydrated)),
        Verdict::Deny => Err(Stop::new(Outcome::PolicyDenied)),
    }
}

/// Whether the policy denies a call with these arguments, so that no person can approve it.
pub(in crate::runner) fn is_denied(run: &Run, hydrated: &Hydrated) -> bool {
    judge(run, hydrated).verdict == Verdict::Deny
}

/// Whether the policy requires an approval for a call with these arguments. The runner's setting for approvals does not
/// matter.
pub(in crate::runner) fn asks(run: &Run, hydrated: &Hydrated) -> bool {
    judge(run, hydrated).verdict == Verdict::RequireApproval
}

/// Returns how many different deciders have to approve a call with these arguments.
pub(in crate::runner) fn required_approvals(run: &Run, hydrated: &Hydrated) -> u32 {
    // Most policies never require several approvals, so their rules need not be evaluated.
    if !run.policy().can_require_several() {
        return 1;
    }
    let frozen = &hydrated.frozen;
    let resource = frozen.entry.policy_resource().repaired(hydrated.repaired());
    run.ask(|policy, context| policy.required(context, &resource, frozen.read()))
}

fn judge(run: &Run, hydrated: &Hydrated) -> Decision {
    let frozen = &hydrated.frozen;
    let resource = frozen.entry.policy_resource().repaired(hydrated.repaired());
    run.ask(|policy, context| policy.decide(context, &resource, frozen.read()))
}

/// Applies a grant (a person's decision for later calls) to a call that requires an approval.
pub(in crate::runner) fn decide_granted(
    open: &mut OpenCall,
    hydrated: Hydrated,
    grant: Key,
    decision: Decision,
) -> Result<Permit, Stop> {
    // If another call takes the grant's last use, this one waits under the policy's own rule.
    let asked = open.draft.decision().cloned();
    let is_allowed = decision.verdict == Verdict::Allow;
    open.draft.decided(Some(decision));
    if !is_allowed {
        let message = "A standing decision refuses calls like this one. It did not run.";
        return Err(Stop::new(Outcome::ApprovalDenied).message(message));
    }
    open.grant = Some(Box::new((grant, asked)));
    Ok(Permit { hydrated })
}

/// Evaluates the policy on arguments that a person approved. Only a denial stops the call.
pub(in crate::runner) fn decide_approved(open: &mut OpenCall, frozen: FrozenCall) -> Result<Permit, Stop> {
    match decide(open, frozen, None)? {
        Judged::Permitted(permit) => Ok(permit),
        // A person has already given the required approval.
        Judged::NeedsApproval(hydrated) => Ok(Permit { hydrated }),
    }
}
