//! [`EarlierCall`]: an earlier call with the same effect as the present one. The tool reconciles it: it asks the
//! outside system whether the earlier call took effect.

use std::sync::Arc;

use crate::call::{CallId, Ends, HydratedCall, RunFields, ledger_key};
use crate::capability::Requirement;
use crate::hydrate::Frozen;
use crate::store::StoredUnknown;
use crate::tool::{Digested, Hash, ToolName};

/// An earlier call of the same tool with the same arguments. The tool reconciles it under the ids and the idempotency
/// key of the earlier call.
pub(in crate::runner) struct EarlierCall {
    frozen: Arc<Frozen>,
    id: CallId,
    fields: RunFields,
    ends: Ends,
}

impl EarlierCall {
    /// Creates the value for `earlier`. `None` if this call cannot reconcile it: the earlier call had other arguments
    /// or another tool, or its tool needs the connections of another principal.
    pub(super) fn of(frozen: &Arc<Frozen>, earlier: &StoredUnknown) -> Option<Self> {
        let StoredUnknown { call, record, .. } = earlier;
        let RunFields { session_id, conversation_id, agent_id, cancellation, .. } = &*frozen.run;
        let (tenant, principal) = (&record.tenant, &record.principal);
        let party = (tenant.as_deref(), principal.as_deref());
        let key =
            ledger_key(party, &call.run_id, frozen.tool_name(), &call.call_id, Digested::effective_digest(&**frozen));
        // The connections of one principal give no access to the data of another.
        let is_reachable =
            *principal == frozen.run.principal || !frozen.entry.requirements.iter().any(Requirement::is_connection);
        if key != call.key || !is_reachable {
            return None;
        }
        let fields = RunFields {
            run_id: Arc::clone(&call.run_id),
            session_id: session_id.clone(),
            conversation_id: conversation_id.clone(),
            agent_id: agent_id.clone(),
            tenant: tenant.clone(),
            principal: principal.clone(),
            cancellation: Arc::clone(cancellation),
        };
        Some(Self { frozen: Arc::clone(frozen), id: call.call_id.clone(), fields, ends: Ends::default() })
    }
}

impl HydratedCall for EarlierCall {
    fn id(&self) -> &CallId {
        &self.id
    }

    fn tool_name(&self) -> &ToolName {
        self.frozen.tool_name()
    }

    fn run(&self) -> &RunFields {
        &self.fields
    }

    fn ends(&self) -> &Ends {
        &self.ends
    }
}

impl Digested for EarlierCall {
    fn tool(&self) -> &str {
        self.frozen.tool()
    }

    fn read(&self) -> &str {
        Digested::read(&*self.frozen)
    }

    fn fingerprint(&self) -> u64 {
        self.frozen.fingerprint()
    }

    fn effective(&self) -> &str {
        self.frozen.effective()
    }

    fn effective_digest(&self) -> Hash {
        Digested::effective_digest(&*self.frozen)
    }
}
