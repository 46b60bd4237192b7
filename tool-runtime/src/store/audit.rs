//! [`AuditRecord`]: an element of a run's chain.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{ArgumentDigest, CallId, RecordedArguments, ToolInvocationRecord};
use crate::store::DecisionRecord;

/// A record of a run: of a call that ended, or of a decision on a suspended call.
///
/// ```
/// use tool_runtime::call::Decider;
/// use tool_runtime::runner::ApprovalDecision;
/// use tool_runtime::store::{AuditRecord, DecisionKind, RecordFilter, Store};
/// use tool_runtime::{ToolCatalog, ToolEffect, ToolError, ToolPolicy, testing, tool};
///
/// # /// Deletes the note.
/// # #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
/// # fn delete() -> Result<String, ToolError> { Ok("deleted".to_owned()) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::allow(["notes__delete"]).with_approval_for_effects([ToolEffect::StateChange]);
/// let harness = testing::harness(ToolCatalog::builder().tool::<delete>().build()?).policy(policy);
/// let waits = harness.call("notes__delete", serde_json::json!({})).await;
/// harness.decide(&waits, ApprovalDecision::Approve, &Decider::new("grace")).await;
///
/// let records = harness.runner().store().records(&RecordFilter::default()).await?;
/// for (sealed, sequence) in records.iter().zip(0..) {
///     assert_eq!(sealed.sequence, sequence);
///     match &sealed.record {
///         AuditRecord::Decision(decision) => assert_eq!(decision.decision, DecisionKind::Approved),
///         AuditRecord::Call(call) => assert!(call.executed),
///         _ => {}
///     }
/// }
/// assert_eq!(records.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditRecord {
    /// The one record of a call.
    Call(Box<ToolInvocationRecord>),
    /// A decision on a suspended call, or an answer to it.
    Decision(Box<DecisionRecord>),
}

impl AuditRecord {
    /// Returns the run.
    #[must_use]
    pub fn run_id(&self) -> &Arc<str> {
        match self {
            Self::Call(record) => &record.run_id,
            Self::Decision(record) => &record.run_id,
        }
    }

    /// Returns the call that it is about.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        match self {
            Self::Call(record) => &record.tool_call_id,
            Self::Decision(record) => &record.call_id,
        }
    }

    /// Returns the stable word for its kind: `call` or `decision`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Decision(_) => "decision",
        }
    }

    /// Returns the name of the tool, as the model wrote it.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Call(record) => &record.name,
            Self::Decision(record) => record.tool.as_str(),
        }
    }

    /// Returns the stable code of the event: [`Outcome::code`](crate::call::Outcome::code) or
    /// [`DecisionKind::code`](crate::store::DecisionKind::code).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call(record) => record.outcome.code(),
            Self::Decision(record) => record.decision.code(),
        }
    }

    /// Returns the principal that the run acts for. `None` if the run names none.
    #[must_use]
    pub const fn principal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Call(record) => record.principal.as_ref(),
            Self::Decision(record) => record.principal.as_ref(),
        }
    }

    /// Returns the tenant of the run. `None` if the run names none.
    #[must_use]
    pub const fn tenant(&self) -> Option<&Arc<str>> {
        match self {
            Self::Call(record) => record.tenant.as_ref(),
            Self::Decision(record) => record.tenant.as_ref(),
        }
    }

    /// Returns when the call ended or the decision was made, by the clock of the process that wrote it.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Call(record) => record.ended_at.unwrap_or(record.started_at),
            Self::Decision(record) => record.at,
        }
    }

    /// Returns the digests of arguments in the record.
    pub(crate) fn digests(&self) -> impl Iterator<Item = ArgumentDigest> {
        let (arguments, repair, decided) = match self {
            Self::Call(record) => (&record.arguments, record.repair.as_deref(), None),
            Self::Decision(record) => (&record.arguments, None, Some([record.argument_digest, record.edited_digest])),
        };
        let unread = match arguments {
            RecordedArguments::Unread { digest, .. } => Some(*digest),
            RecordedArguments::Masked(_) => None,
        };
        let repaired = repair.map(|repair| [repair.before, repair.after]);
        unread.into_iter().chain(repaired.into_iter().flatten()).chain(decided.into_iter().flatten().flatten())
    }

    /// Returns the record of a call; `None` for a decision.
    #[must_use]
    pub fn as_call(&self) -> Option<&ToolInvocationRecord> {
        if let Self::Call(record) = self { Some(record) } else { None }
    }

    /// Returns the record of a decision; `None` for a call.
    #[must_use]
    pub fn as_decision(&self) -> Option<&DecisionRecord> {
        match self {
            Self::Call(_) => None,
            Self::Decision(record) => Some(record),
        }
    }
}

impl From<ToolInvocationRecord> for AuditRecord {
    fn from(record: ToolInvocationRecord) -> Self {
        Self::Call(Box::new(record))
    }
}

impl From<DecisionRecord> for AuditRecord {
    fn from(record: DecisionRecord) -> Self {
        Self::Decision(Box::new(record))
    }
}
