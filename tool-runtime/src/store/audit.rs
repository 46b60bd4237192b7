//! [`AuditRecord`]: what a run's chain is made of.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{
    ArgumentChange, ArgumentDigest, CallId, Decider, Mismatch, Outcome, RecordedArguments, RecordedViolation,
    ToolInvocationRecord,
};
use crate::store::PendingCall;
use crate::tool::ToolName;

/// A record of a run: of a call that ended, or of what somebody decided on one that waited.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditRecord {
    /// The one record of a call.
    Call(Box<ToolInvocationRecord>),
    /// A decision on a call that waited, or an answer to it.
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

    /// Returns what it is a record of.
    #[must_use]
    pub const fn kind(&self) -> AuditKind {
        match self {
            Self::Call(_) => AuditKind::Call,
            Self::Decision(_) => AuditKind::Decision,
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

    /// Returns the stable word for what happened: [`Outcome::code`] or [`DecisionKind::code`].
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

    /// Returns the digests that stand for arguments in it.
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

    /// Returns the record of a call.
    #[must_use]
    pub fn as_call(&self) -> Option<&ToolInvocationRecord> {
        if let Self::Call(record) = self { Some(record) } else { None }
    }

    /// Returns the record of a decision.
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

/// What an [`AuditRecord`] is a record of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditKind {
    /// A call that ended.
    Call,
    /// A decision on a call that waited, or an answer to it.
    Decision,
}

impl AuditKind {
    /// A stable word for each case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Decision => "decision",
        }
    }
}

/// What somebody decided on a call that waited, or answered to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecisionRecord {
    /// The run.
    pub run_id: Arc<str>,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The principal that the run acts for; `None` if the run names none.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run; `None` if the run names none.
    pub tenant: Option<Arc<str>>,
    /// Who decided, and why. `None` where nobody does: the call expired, was abandoned or answered by its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<Decider>,
    /// The decision.
    pub decision: DecisionKind,
    /// Why it did not fit, and the call still waits. `None` if it was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
    /// When it was made.
    pub at: Timestamp,
    /// Stands for the frozen arguments that were decided on. `None` if the call was suspended before digests had keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_digest: Option<ArgumentDigest>,
    /// Stands for the arguments that they were replaced with; `None` if they were not edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_digest: Option<ArgumentDigest>,
    /// What an edit changed, with sensitive values masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The grant that was made. `None` for a decision on this call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Arc<str>>,
    /// The arguments, masked: as they were, or as they were edited.
    pub arguments: RecordedArguments,
}

/// What was decided on a call that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionKind {
    /// It may run as it is.
    Approved,
    /// It may run with other arguments.
    Edited,
    /// It does not run.
    Denied,
    /// Somebody answered in the tool's place.
    Answered,
    /// Nobody decided in time.
    Expired,
    /// Somebody decided, or the client answered, after the call had expired. It changed nothing.
    TooLate,
    /// Nobody will act on it.
    Abandoned,
    /// It still waits; calls like it are decided by a grant.
    Remembered,
    /// The client executed it and brought its result.
    ClientResult,
    /// The client could not execute it.
    ClientFailed,
}

/// Why a decision or an answer did not fit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// What was wrong, as the outcome that it would have had.
    pub outcome: Outcome,
    /// What differs between the call as it was suspended and now, or why the decider may not decide. `None` if only
    /// what was given for the call is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<Mismatch>,
    /// Where what was given broke a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<RecordedViolation>,
}

impl DecisionKind {
    /// All of them, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::Approved,
        Self::Edited,
        Self::Denied,
        Self::Answered,
        Self::Expired,
        Self::TooLate,
        Self::Abandoned,
        Self::Remembered,
        Self::ClientResult,
        Self::ClientFailed,
    ];

    /// A stable word for each case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Edited => "edited",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::TooLate => "too_late",
            Self::Abandoned => "abandoned",
            Self::Remembered => "remembered",
            Self::ClientResult => "client_result",
            Self::ClientFailed => "client_failed",
        }
    }
}

impl DecisionRecord {
    /// The record of a decision on a call that waits, carried out, with the arguments as they were.
    pub(crate) fn new(pending: &PendingCall, decision: DecisionKind, decider: Option<&Decider>, at: Timestamp) -> Self {
        Self {
            run_id: Arc::clone(&pending.run_id),
            call_id: pending.call_id.clone(),
            tool: pending.tool.clone(),
            principal: pending.principal.clone(),
            tenant: pending.tenant.clone(),
            decider: decider.cloned(),
            decision,
            refused: None,
            at,
            argument_digest: pending.record_digest,
            edited_digest: None,
            changes: Vec::new(),
            grant: None,
            arguments: RecordedArguments::Masked(pending.shown_arguments.clone()),
        }
    }

    /// The refused record of a decision on a call that does not wait, with the arguments of the call's known record.
    /// `None` if the call named no tool, so that it cannot have waited.
    pub(crate) fn late(
        known: AuditRecord,
        decision: DecisionKind,
        decider: Option<&Decider>,
        at: Timestamp,
    ) -> Option<Self> {
        let record = Self {
            run_id: Arc::clone(known.run_id()),
            call_id: known.call_id().clone(),
            tool: ToolName::foreign(known.tool()).ok()?,
            principal: known.principal().cloned(),
            tenant: known.tenant().cloned(),
            decider: decider.cloned(),
            decision,
            refused: None,
            at,
            argument_digest: None,
            edited_digest: None,
            changes: Vec::new(),
            grant: None,
            arguments: match known {
                AuditRecord::Call(call) => call.arguments,
                AuditRecord::Decision(decision) => decision.arguments,
            },
        };
        Some(record.not_pending())
    }

    /// The same decision, refused because its call does not wait.
    pub(crate) fn not_pending(self) -> Self {
        let (outcome, mismatch) = (Outcome::ApprovalMismatch, Some(Mismatch::NotPending));
        Self { refused: Some(Refusal { outcome, mismatch, violations: Vec::new() }), ..self }
    }
}
