//! [`AuditRecord`]: a record in the chain of a run.

use std::sync::Arc;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::call::{ArgumentDigest, CallId, RecordSeal, RecordedArguments, ToolInvocationRecord};
use crate::store::{DecisionRecord, RetentionRecord};

/// A record of a run: of a call that ended, of a decision on a suspended call, of a purge or an erasure of records, or
/// of a legal hold.
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
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AuditRecord {
    /// The record of a call that ended.
    Call(Box<ToolInvocationRecord>),
    /// A decision on a suspended call, or an answer to such a call.
    Decision(Box<DecisionRecord>),
    /// A purge or an erasure of records of the run, or a legal hold.
    Retention(Box<RetentionRecord>),
    /// A record whose values were erased. The remaining values are those of the original record.
    Erased(Box<Self>),
}

/// Written as `{"call": {..}}`, with a second member `seal` once it is sealed. The seal is outside the inner object, so
/// that equal calls have equal objects.
impl Serialize for AuditRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seal = self.seal();
        let mut members = serializer.serialize_map(Some(1 + usize::from(seal.is_some())))?;
        match self {
            Self::Call(record) => members.serialize_entry("call", record),
            Self::Decision(record) => members.serialize_entry("decision", record),
            Self::Retention(record) => members.serialize_entry("retention", record),
            Self::Erased(record) => members.serialize_entry("erased", record),
        }?;
        if let Some(seal) = seal {
            members.serialize_entry("seal", seal)?;
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for AuditRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            call: Option<Box<ToolInvocationRecord>>,
            decision: Option<Box<DecisionRecord>>,
            retention: Option<Box<RetentionRecord>>,
            erased: Option<Box<AuditRecord>>,
            seal: Option<Box<RecordSeal>>,
        }
        match Members::deserialize(deserializer)? {
            Members { call: Some(mut record), decision: None, retention: None, erased: None, seal } => {
                record.seal = seal;
                Ok(Self::Call(record))
            }
            Members { decision: Some(mut record), call: None, retention: None, erased: None, seal } => {
                record.seal = seal;
                Ok(Self::Decision(record))
            }
            Members { retention: Some(record), call: None, decision: None, erased: None, seal: None } => {
                Ok(Self::Retention(record))
            }
            Members { erased: Some(record), call: None, decision: None, retention: None, seal: None } => {
                Ok(Self::Erased(record))
            }
            _ => Err(D::Error::custom("a record is one of `call`, `decision`, `retention` and `erased`")),
        }
    }
}

impl AuditRecord {
    /// Returns the seal of the record.
    fn seal(&self) -> Option<&RecordSeal> {
        match self {
            Self::Call(record) => record.seal.as_deref(),
            Self::Decision(record) => record.seal.as_deref(),
            Self::Retention(_) | Self::Erased(_) => None,
        }
    }

    /// Returns the id of the run.
    #[must_use]
    pub fn run_id(&self) -> &Arc<str> {
        match self {
            Self::Call(record) => &record.run_id,
            Self::Decision(record) => &record.run_id,
            Self::Retention(record) => &record.run_id,
            Self::Erased(record) => record.run_id(),
        }
    }

    /// Returns the id of the call. It is `-` if the record has no call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        match self {
            Self::Call(record) => &record.tool_call_id,
            Self::Decision(record) => &record.call_id,
            Self::Retention(_) => RetentionRecord::call_id(),
            Self::Erased(record) => record.call_id(),
        }
    }

    /// Returns the stable word for the kind of the record: `call`, `decision` or `retention`. An erased record keeps
    /// its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Decision(_) => "decision",
            Self::Retention(_) => "retention",
            Self::Erased(record) => record.kind(),
        }
    }

    /// Returns the name of the tool, as the model wrote it. Empty if the record has no call, and for an erased call of
    /// a tool that the catalog did not have.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Call(record) => &record.name,
            Self::Decision(record) => record.tool.as_str(),
            Self::Retention(_) => "",
            Self::Erased(record) => record.tool(),
        }
    }

    /// Returns the stable code of the event: [`Outcome::code`](crate::call::Outcome::code),
    /// [`DecisionKind::code`](crate::store::DecisionKind::code) or [`RetentionRecord::code`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call(record) => record.outcome.code(),
            Self::Decision(record) => record.decision.code(),
            Self::Retention(record) => record.code(),
            Self::Erased(record) => record.code(),
        }
    }

    /// Returns the principal that the run acts for. `None` if the run has no principal, or the record is erased. For
    /// the record of a legal hold on a principal, returns that principal.
    #[must_use]
    pub fn principal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Call(record) => record.principal.as_ref(),
            Self::Decision(record) => record.principal.as_ref(),
            Self::Retention(record) => record.principal(),
            Self::Erased(record) => record.principal(),
        }
    }

    /// Returns the tenant of the run. `None` if the run has no tenant. For the record of a legal hold, returns the
    /// tenant that the hold names.
    #[must_use]
    pub fn tenant(&self) -> Option<&Arc<str>> {
        match self {
            Self::Call(record) => record.tenant.as_ref(),
            Self::Decision(record) => record.tenant.as_ref(),
            Self::Retention(record) => record.tenant(),
            Self::Erased(record) => record.tenant(),
        }
    }

    /// Returns when the call ended or the decision was made, by the clock of the process that wrote the record. For a
    /// purge, an erasure or a legal hold, returns the time of the store.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Call(record) => record.ended_at.unwrap_or(record.started_at),
            Self::Decision(record) => record.at,
            Self::Retention(record) => record.at,
            Self::Erased(record) => record.at(),
        }
    }

    /// Returns the digests of arguments in the record.
    pub(crate) fn digests(&self) -> impl Iterator<Item = ArgumentDigest> {
        let (arguments, repair, decided) = match self {
            Self::Call(record) => (Some(&record.arguments), record.repair.as_deref(), None),
            Self::Decision(record) => {
                (Some(&record.arguments), None, Some([record.argument_digest, record.edited_digest]))
            }
            Self::Retention(_) | Self::Erased(_) => (None, None, None),
        };
        let unread = match arguments {
            Some(RecordedArguments::Unread { digest, .. }) => Some(*digest),
            Some(RecordedArguments::Masked(_)) | None => None,
        };
        let repaired = repair.map(|repair| [repair.before, repair.after]);
        unread.into_iter().chain(repaired.into_iter().flatten()).chain(decided.into_iter().flatten().flatten())
    }

    /// Returns the record of a call, even if it is erased. `None` for any other record.
    #[must_use]
    pub fn as_call(&self) -> Option<&ToolInvocationRecord> {
        match self {
            Self::Call(record) => Some(record),
            Self::Erased(record) => record.as_call(),
            Self::Decision(_) | Self::Retention(_) => None,
        }
    }

    /// Returns the record of a decision, even if it is erased. `None` for any other record.
    #[must_use]
    pub fn as_decision(&self) -> Option<&DecisionRecord> {
        match self {
            Self::Decision(record) => Some(record),
            Self::Erased(record) => record.as_decision(),
            Self::Call(_) | Self::Retention(_) => None,
        }
    }

    /// Returns the record of a purge, an erasure or a legal hold. `None` for any other record.
    #[must_use]
    pub fn as_retention(&self) -> Option<&RetentionRecord> {
        if let Self::Retention(record) = self { Some(record) } else { None }
    }

    /// Whether the values of the record were erased.
    #[must_use]
    pub const fn is_erased(&self) -> bool {
        matches!(self, Self::Erased(_))
    }
}

impl From<ToolInvocationRecord> for AuditRecord {
    fn from(record: ToolInvocationRecord) -> Self {
        Self::Call(Box::new(record))
    }
}

impl From<RetentionRecord> for AuditRecord {
    fn from(record: RetentionRecord) -> Self {
        Self::Retention(Box::new(record))
    }
}

impl From<DecisionRecord> for AuditRecord {
    fn from(record: DecisionRecord) -> Self {
        Self::Decision(Box::new(record))
    }
}
