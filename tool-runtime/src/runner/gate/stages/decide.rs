//! Decide: asks the policy again, now with the arguments.

use crate::call::{Decision, Outcome, Verdict};
use crate::hydrate::Hydrated;
use crate::runner::Run;
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::freeze::FrozenCall;
use crate::store::Key;
use crate::tool::Digested as _;

/// A hydrated call that the policy allows. Only [`decide`] and an approval make one.
pub(in crate::runner) struct Permit {
    pub(super) hydrated: Hydrated,
}

/// The policy's decision on frozen arguments, unless it denies the call.
pub(in crate::runner) enum Judged {
    Permitted(Permit),
    NeedsApproval(Hydrated),
}

/// Asks the policy about frozen arguments, unless the decision at admission is final. Most policies have no rules for
/// the arguments of most tools, and asking costs as much as parsing the arguments of a small call.
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

/// Whether the policy requires an approval for a call with these arguments, also in a process without approvals.
pub(in crate::runner) fn asks(run: &Run, hydrated: &Hydrated) -> bool {
    judge(run, hydrated).verdict == Verdict::RequireApproval
}

/// Returns how many different deciders have to approve a call with these arguments.
pub(in crate::runner) fn required_approvals(run: &Run, hydrated: &Hydrated) -> u32 {
    // Most policies never require several, so the rules need not be evaluated.
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

/// Applies a grant to a call that requires an approval.
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

/// Asks the policy about arguments that a person approved: only a denial still counts.
pub(in crate::runner) fn decide_approved(open: &mut OpenCall, frozen: FrozenCall) -> Result<Permit, Stop> {
    match decide(open, frozen, None)? {
        Judged::Permitted(permit) => Ok(permit),
        // The approval that this asks for has been given.
        Judged::NeedsApproval(hydrated) => Ok(Permit { hydrated }),
    }
}
