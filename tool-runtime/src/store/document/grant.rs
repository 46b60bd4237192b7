//! [`StoredGrant`]: a stored decision that applies to later calls.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{ArgumentDigest, CallId, Caller, Decider, JsonText, Verdict};
use crate::policy::ArgumentRule;
use crate::store::key::Key;
use crate::store::pending::PendingCall;
use crate::tool::{Hash, ToolName};

/// A decision that applies to later calls. It takes effect only where the policy requires an approval. A call that the
/// policy denies stays denied.
///
/// [`Run::remember`](crate::Run::remember) creates it from a suspended call that a person has reviewed. The grant is
/// valid for the definition of the tool in that call and for runs of the same tenant, and never for repaired arguments.
/// A grant that allows calls is valid for the caller of the reviewed call, and never for a script. It does not apply in
/// a run with a label that the reviewed call's run lacked. The policy of the run that uses the grant must still permit
/// its decider to decide on such a call. A grant that denies calls is valid for every caller and under every label
/// until it is revoked or expires, and overrides all grants that allow calls. `Debug` shows no arguments.
///
/// [`Grant`](crate::runner::Grant) has an example.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StoredGrant {
    /// The id of the grant. The record of a call that it allowed has the rule `grant:ID`.
    pub id: Arc<str>,
    /// The tool.
    pub tool: ToolName,
    /// The hash of the tool's definition in the reviewed call.
    pub definition_hash: Hash,
    /// The runs to which the grant applies.
    pub scope: GrantScope,
    /// The tenant of the run.
    pub tenant: Option<Arc<str>>,
    /// The principal of the run. Only the scope [`GrantScope::Tenant`] includes runs of other principals.
    pub principal: Option<Arc<str>>,
    /// The caller of the reviewed call.
    pub(crate) caller: GrantCaller,
    /// The reviewed call. The record of a revocation names it.
    pub(crate) origin: GrantOrigin,
    /// The labels that the run had when the call was reviewed.
    pub labels: Vec<Arc<str>>,
    /// The decision. Never [`Verdict::RequireApproval`].
    pub verdict: Verdict,
    pub(crate) covers: Covered,
    /// How many more calls may use the grant. `None` for no limit.
    pub uses: Option<u32>,
    /// When the grant expires. `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The decider, with the reason.
    pub decider: Decider,
    /// When the grant was made.
    pub created_at: Timestamp,
    /// When a sweep last found the grant expired but under a legal hold, so that it stays for another week. `None`
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_hold: Option<Timestamp>,
}

/// The runs to which a grant applies.
///
/// [`Grant`](crate::runner::Grant) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantScope {
    /// The run with this id.
    Run(Arc<str>),
    /// Runs of the conversation with this id.
    Conversation(Arc<str>),
    /// Runs of the principal.
    Principal,
    /// Runs of all principals of the tenant.
    Tenant,
}

/// The call from which a grant was made, as records show it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantOrigin {
    pub(crate) run_id: Arc<str>,
    pub(crate) call_id: CallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) argument_digest: Option<ArgumentDigest>,
    /// The arguments, with sensitive ones masked.
    pub(crate) shown_arguments: JsonText,
}

impl From<&PendingCall> for GrantOrigin {
    fn from(call: &PendingCall) -> Self {
        Self {
            run_id: Arc::clone(&call.run_id),
            call_id: call.call_id.clone(),
            argument_digest: call.record_digest,
            shown_arguments: call.shown_arguments.clone(),
        }
    }
}

/// The caller whose calls a grant allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GrantCaller {
    /// The agent loop or the application.
    Direct,
    /// The graph (an agent or a script that runs as a tool) with this name.
    Graph(Arc<str>),
}

impl From<&Caller> for GrantCaller {
    fn from(caller: &Caller) -> Self {
        match caller {
            Caller::Direct => Self::Direct,
            Caller::Graph { name, .. } => Self::Graph(name.as_str().into()),
        }
    }
}

/// The arguments that a grant covers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Covered {
    /// Exactly the arguments with this digest.
    Exactly(Hash),
    /// Arguments that satisfy all of these rules.
    Matching(Vec<ArgumentRule>),
}

impl StoredGrant {
    /// Returns the name of the graph that made the reviewed call. `None` if the agent loop or the application made it.
    /// A grant that allows calls covers only calls of the same caller.
    #[must_use]
    pub fn graph(&self) -> Option<&str> {
        match &self.caller {
            GrantCaller::Direct => None,
            GrantCaller::Graph(name) => Some(name),
        }
    }

    /// Returns the key of the grant's document.
    pub(crate) fn key(&self) -> Key {
        Key::grant(self.tool.as_str(), self.tenant.as_deref(), Arc::clone(&self.id))
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }
}

impl fmt::Debug for StoredGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredGrant")
            .field("id", &self.id)
            .field("tool", &self.tool)
            .field("scope", &self.scope)
            .field("verdict", &self.verdict)
            .field("uses", &self.uses)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
