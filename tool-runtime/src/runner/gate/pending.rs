//! Makes the document of an open call, for its entry in the ledger and for its suspension.

use std::sync::Arc;

use jiff::Timestamp;

use crate::call::Suspension;
use crate::hydrate::Frozen;
use crate::runner::gate::open::OpenCall;
use crate::store::{FrozenArguments, PendingCall};

/// Returns the document of a call that begins or waits, with every value that is compared before it continues. The
/// digest key must have been read before this function is called.
pub(in crate::runner) fn frozen_call(open: &OpenCall, frozen: &Frozen, now: Timestamp) -> PendingCall {
    let (run, spec) = (open.run(), &frozen.entry.spec);
    let options = run.options();
    PendingCall {
        version: PendingCall::VERSION,
        call_id: open.draft.id.clone(),
        tool: spec.name.clone(),
        definition_hash: spec.definition_hash,
        arguments: FrozenArguments::new(Arc::clone(frozen.canonical())),
        argument_digest: frozen.argument_digest(),
        record_digest: None,
        shown_arguments: frozen.decided_on(),
        summary: None,
        names: Vec::new(),
        changes: Vec::new(),
        principal: options.principal.clone(),
        tenant: options.tenant.clone(),
        roles: options.roles.clone(),
        attributes: options.attributes.clone(),
        tools: options.tools.clone(),
        policy_revision: run.policy().revision(),
        rule: open.draft.rule().map(str::to_owned),
        labels: run.labels(),
        gained: Vec::new(),
        run_id: Arc::clone(run.identity()),
        session_id: options.session.clone(),
        conversation_id: options.conversation.clone(),
        caller: options.caller.clone(),
        repair: open.draft.repair(&run.shared().digests),
        started_at: open.draft.started_at,
        created_at: now,
        expires_at: now,
        suspension: Suspension::Approval,
        prepared: None,
        graph: None,
        unknown: Vec::new(),
        required: 1,
        approvals: Vec::new(),
        replaced: None,
        world: None,
    }
}
