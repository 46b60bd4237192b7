//! The comparison of a waiting call with the run that wants to finish it, in one place for every way of finishing it.
//!
//! Who may know of the call is asked first: to anybody else it does not exist. What may happen to it is asked before it
//! is claimed, so a mismatch leaves it waiting for a run that fits.

use crate::call::{CallId, Failed, Outcome, SafeError, ToolExecResult};
use crate::json;
use crate::policy::RunTools;
use crate::runner::Run;
use crate::runner::suspend::Purpose;
use crate::store::PendingCall;

/// Whether what is kept under the run's id belongs to the principal and the tenant of the run. Run ids can come from a
/// request, so two runs of one id need not be of the same people.
pub(super) fn owns(run: &Run, principal: Option<&str>, tenant: Option<&str>) -> bool {
    let options = run.options();
    options.principal.as_deref() == principal && options.tenant.as_deref() == tenant
}

/// Whether the call waits for this, and belongs to the principal and the tenant of the run.
pub(super) fn is_theirs(run: &Run, pending: &PendingCall, purpose: Purpose) -> bool {
    let wanted = match purpose {
        Purpose::Resume(suspension) => Some(suspension),
        Purpose::Close(suspension) => suspension,
    };
    wanted.is_none_or(|suspension| suspension == pending.suspension)
        && owns(run, pending.principal.as_deref(), pending.tenant.as_deref())
}

/// Whether what was suspended is still what would run, in a run that is not wider than the one that made the call.
/// `Err` says what differs, for operators.
///
/// Labels are not compared but taken over: the run carries those of the call from now on.
pub(super) fn compare(run: &Run, pending: &PendingCall) -> Result<(), &'static str> {
    let (shared, options) = (run.shared(), run.options());
    let definition = shared.catalog.entry(pending.tool.as_str()).map(|entry| entry.spec.definition_hash);
    if definition != Some(pending.definition_hash) {
        return Err("the definition of the tool changed");
    }
    if shared.policy.revision() != pending.policy_revision {
        return Err("the policy changed");
    }
    if json::digest(pending.arguments.as_str()) != pending.argument_digest {
        return Err("the stored arguments changed");
    }
    if options.roles.iter().any(|role| !pending.roles.contains(role)) {
        return Err("the run has a role that the call's run did not have");
    }
    if !RunTools::within(options.tools.as_ref(), pending.tools.as_ref()) {
        return Err("the run has a tool that the call's run did not have");
    }
    let mut state = run.state();
    pending.labels.iter().for_each(|label| state.label(label));
    Ok(())
}

/// The result of an attempt that does not fit the call. The call still waits, so no record and no event tells it.
pub(super) fn mismatch(id: CallId, why: &'static str) -> ToolExecResult {
    let error = SafeError {
        error_code: Outcome::ApprovalMismatch,
        tool_code: None,
        safe_message: Outcome::ApprovalMismatch.safe_message().to_owned(),
        errors: Vec::new(),
    };
    ToolExecResult::failed(id, false, Failed { error, concealed: false, detail: Some(why.into()) })
}
