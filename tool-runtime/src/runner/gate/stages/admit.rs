//! Admit: checks whether the arguments of this call may be read.

use std::sync::Arc;

use crate::call::{Decision, Outcome, ToolCall};
use crate::catalog::Entry;
use crate::hydrate::Hydrated;
use crate::policy::{Terms, ToolLimits};
use crate::runner::gate::ending::Stop;
use crate::runner::gate::open::OpenCall;
use crate::runner::gate::stages::resolve::resolve;
use crate::runner::run::call_ids::{MAX_CALLS, Taken};

/// A call whose tool exists and may be used by the run.
pub(in crate::runner) struct Admitted {
    pub(super) entry: Arc<Entry>,
    pub(super) limits: ToolLimits,
    /// The policy's decision, if it is the same for all arguments. `None` if the policy has rules about arguments.
    pub(in crate::runner) decision: Option<Decision>,
}

/// Checks that the call is complete, new and not cancelled, and finds its tool.
#[inline]
pub(in crate::runner) fn admit(open: &mut OpenCall, call: &ToolCall) -> Result<Admitted, Stop> {
    if !call.is_complete() {
        return Err(Stop::new(Outcome::IncompleteCall));
    }
    // Checked before the tool is looked up, so that a repeated id is refused even if its tool is gone.
    match open.id_status() {
        Taken::First => {}
        Taken::Again => {
            let message = "This call id was already used in this run. The call did not run again.";
            return Err(Stop::new(Outcome::PolicyDenied).message(message));
        }
        Taken::TooMany => {
            let message = format!("This run has had {MAX_CALLS} calls, the most it may have. The call did not run.");
            return Err(Stop::new(Outcome::BudgetExceeded).message(message));
        }
    }
    if open.cancellation().is_cancelled() {
        return Err(Stop::new(Outcome::Cancelled));
    }
    // The result is the same as for an unknown tool, so that a client cannot probe for tools outside its list.
    if open.client.as_ref().is_some_and(|client| !client.is_offered) {
        return Err(Stop::new(Outcome::Unavailable));
    }
    let (entry, decision) = resolve(open.run(), &call.name, open.draft.tool()).map_err(|unresolved| {
        open.draft.decided(unresolved.decision);
        unresolved.stop
    })?;
    let terms = open.run().policy().terms_of(entry.spec.name.as_str(), entry.spec.effect);
    let Terms { effect, limits, has_argument_rules } = terms;
    open.draft.set_tool(&entry, effect);
    // Checked before the tool runs, because otherwise its effect would happen without a visible result.
    if open.run().shared().compiled.projector(&entry).is_none() {
        let message = "The tool has no redaction allowlist, so its output could not be shown. It did not run.";
        return Err(Stop::new(Outcome::RedactionFailed).message(message));
    }
    Ok(Admitted { entry, limits, decision: (!has_argument_rules).then_some(decision) })
}

/// Admits a call that this run hydrated before, and refuses a call that another run hydrated. Returns
/// [`Admitted::decision`].
pub(in crate::runner) fn admit_hydrated(open: &mut OpenCall, hydrated: &Hydrated) -> Result<Option<Decision>, Stop> {
    let admitted = admit(open, hydrated.call())?;
    // The pointer identifies the run for which evidence and limits were checked.
    if Arc::ptr_eq(open.run().fields(), &hydrated.frozen.run) {
        open.hydrated(&hydrated.frozen.treatment);
        return Ok(admitted.decision);
    }
    let message = "The call was hydrated by another run. It did not run: hydrate it in the run that executes it.";
    Err(Stop::new(Outcome::PolicyDenied).message(message))
}
