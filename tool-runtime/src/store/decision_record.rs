//! [`DecisionRecord`]: the record of a decision on a suspended call.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{
    ArgumentChange, ArgumentDigest, CallId, Cause, Decider, DecisionError, JsonText, Outcome, Question, RecordSeal,
    RecordedArguments, RecordedWorld, Violation,
};
use crate::store::{AuditRecord, GrantOrigin, PendingCall, StoredGrant};
use crate::tool::ToolName;

/// A decision on a suspended call, or an answer to it.
///
/// [`AuditRecord`] has an example.
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
    /// The decider, with the reason. `None` without a decider: the call expired, was abandoned, or was answered by its
    /// client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<Decider>,
    /// The decision.
    pub decision: DecisionKind,
    /// Why the decision was refused and the call still waits. `None` if it was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<DecisionRefusal>,
    /// The question that the decision answers. `None` for a grant, its revocation, a settlement, and a decision without
    /// a question: the call was abandoned, or answered by its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// When the decision was made.
    pub at: Timestamp,
    /// Digest of the frozen arguments that were decided on. `None` if the call was suspended before digests had keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_digest: Option<ArgumentDigest>,
    /// Digest of the replacement arguments; `None` if they were not edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_digest: Option<ArgumentDigest>,
    /// The changes of an edit, with sensitive values masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The id of the grant that the decision made or revoked. `None` for a decision on this call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Arc<str>>,
    /// For an approval of a call that needs several: the number of approvals with this one, and the required number.
    /// The call waits until both are equal. `None` for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<(u32, u32)>,
    /// For the last approval of a call that needs several: the other deciders whose approvals count. A snapshot, a
    /// token or a graph can have brought these from another store, which has their records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Decider>,
    /// The projected result of a call that is settled as [`Happened`](DecisionKind::Happened). `None` for every other
    /// decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonText>,
    /// The precondition of the call. `None` if its tool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<Box<RecordedWorld>>,
    /// The state of the call when its unknown outcome was settled. `None` for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<Box<RecordedUnknown>>,
    /// The masked arguments: as suspended, or as edited.
    pub(crate) arguments: RecordedArguments,
    /// How the record is sealed. `None` until it is, and for a record that is sealed as one text. It is not part of the
    /// record: an [`AuditRecord`] is written with it.
    #[serde(skip)]
    pub(crate) seal: Option<Box<RecordSeal>>,
}

/// The decision on a suspended call.
///
/// [`AuditRecord`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionKind {
    /// The call may run as it is.
    Approved,
    /// The call may run with other arguments.
    Edited,
    /// The call does not run.
    Denied,
    /// A person answered in the tool's place.
    Answered,
    /// The deadline passed without a decision.
    Expired,
    /// A decision or a client's answer arrived after the call had expired. It had no effect.
    TooLate,
    /// The call was given up: no decision on it will come.
    Abandoned,
    /// The call still waits; a grant decides later calls like it.
    Remembered,
    /// The grant that was made from this call was revoked: later calls require an approval again.
    Revoked,
    /// The client executed the call and returned its result.
    ClientResult,
    /// The client could not execute the call.
    ClientFailed,
    /// A person asked the tool to reconcile the call, whose outcome is unknown. If it could, `Happened` or
    /// `DidNotHappen` follows.
    Reconcile,
    /// The unknown outcome of the call is settled: it took effect. Without a decider, its tool reconciled it.
    Happened,
    /// The unknown outcome of the call is settled: it had no effect. Without a decider, its tool reconciled it.
    DidNotHappen,
}

/// The facts about an unknown outcome that the record of its settlement keeps, in addition to ids and arguments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecordedUnknown {
    /// When the call was interrupted, or found to be.
    pub(crate) since: Timestamp,
    /// The interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// The effect key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect_key: Option<Arc<str>>,
}

/// Why a decision or an answer was refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DecisionRefusal {
    /// The error, as the outcome that the call would have had.
    pub(crate) outcome: Outcome,
    /// The difference between the call as it was suspended and now, or the reason why the decider may not decide.
    /// `None` if only the submitted values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mismatch: Option<DecisionError>,
    /// The places at which the submitted values broke a rule, without the expected value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) violations: Vec<Violation>,
}

impl DecisionKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::Approved,
        Self::Edited,
        Self::Denied,
        Self::Answered,
        Self::Expired,
        Self::TooLate,
        Self::Abandoned,
        Self::Remembered,
        Self::Revoked,
        Self::ClientResult,
        Self::ClientFailed,
        Self::Reconcile,
        Self::Happened,
        Self::DidNotHappen,
    ];

    /// Whether the decision is about later calls, so that it leaves the call itself as it is.
    pub(crate) const fn is_about_later_calls(self) -> bool {
        matches!(self, Self::Remembered | Self::Revoked)
    }

    /// Returns a stable code for each kind.
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
            Self::Revoked => "revoked",
            Self::ClientResult => "client_result",
            Self::ClientFailed => "client_failed",
            Self::Reconcile => "reconcile",
            Self::Happened => "happened",
            Self::DidNotHappen => "did_not_happen",
        }
    }
}

impl DecisionRecord {
    /// Returns the arguments that were decided on, with the sensitive ones masked; `None` if they could not be read.
    #[must_use]
    pub fn shown_arguments(&self) -> Option<&JsonText> {
        self.arguments.shown()
    }

    /// Returns the length in bytes and the digest of arguments that could not be read; `None` if they were read.
    #[must_use]
    pub fn unread_arguments(&self) -> Option<(usize, ArgumentDigest)> {
        self.arguments.unread()
    }

    /// Whether the call waits for the approvals of other deciders after this one.
    pub(crate) fn is_partial(&self) -> bool {
        self.approvals.is_some_and(|(given, required)| given < required)
    }

    /// Returns why the decision or the answer was refused, as the outcome that the call would have had; `None` if it
    /// was carried out.
    #[must_use]
    pub fn refused(&self) -> Option<Outcome> {
        self.refused.as_ref().map(|refused| refused.outcome)
    }

    /// Returns the difference between the call as it was suspended and now, or the reason why the decider may not
    /// decide. `None` if it was carried out, or if only the submitted values are wrong.
    #[must_use]
    pub fn mismatch(&self) -> Option<DecisionError> {
        self.refused.as_ref()?.mismatch
    }

    /// Returns the places at which the submitted values broke a rule, without the expected values.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.refused.as_ref().map_or(&[], |refused| &refused.violations)
    }

    /// Returns when the call whose unknown outcome was settled had been interrupted, or was found to be, and the cause
    /// as in [`ToolInvocationRecord::cause`](crate::ToolInvocationRecord::cause). `None` for every other decision. The
    /// record as JSON has the effect key of the call too, as `unknown.effect_key`.
    #[must_use]
    pub fn interruption(&self) -> Option<(Timestamp, Option<&'static str>)> {
        self.unknown.as_ref().map(|unknown| (unknown.since, unknown.cause.map(Cause::as_str)))
    }

    /// Returns the statements of the tool's precondition that the decider was shown: names and values.
    #[must_use]
    pub fn shown_statements(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        pairs(self.world.as_deref().map_or(&[], |world| &world.shown))
    }

    /// Returns the statements as they read immediately before the approved call began, or would have begun: if they are
    /// not those that the decider was shown, the decision is refused. `None` if the decision was not to let the call
    /// begin, if they could not be read then, or if there are none.
    #[must_use]
    pub fn statements_at_begin(&self) -> Option<impl ExactSizeIterator<Item = (&str, &str)>> {
        self.world.as_deref().and_then(|world| world.begun.as_deref()).map(pairs)
    }

    /// Creates the record of a decision that was carried out on a suspended call, with its original arguments.
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
            question: None,
            at,
            argument_digest: pending.record_digest,
            edited_digest: None,
            changes: Vec::new(),
            grant: None,
            approvals: None,
            earlier: Vec::new(),
            result: None,
            world: pending
                .world
                .as_deref()
                .filter(|world| !world.stated.is_empty())
                .map(|world| Box::new(RecordedWorld { shown: RecordedWorld::pairs(&world.stated), begun: None })),
            unknown: None,
            arguments: RecordedArguments::Masked(pending.shown_arguments.clone()),
            seal: None,
        }
    }

    /// Creates the record of a revocation, for the call from which the grant was made.
    pub(crate) fn revoked(grant: &StoredGrant, decider: &Decider, at: Timestamp) -> Self {
        let GrantOrigin { run_id, call_id, argument_digest, shown_arguments } = grant.origin.clone();
        Self {
            run_id,
            call_id,
            tool: grant.tool.clone(),
            principal: grant.principal.clone(),
            tenant: grant.tenant.clone(),
            decider: Some(decider.clone()),
            decision: DecisionKind::Revoked,
            refused: None,
            question: None,
            at,
            argument_digest,
            edited_digest: None,
            changes: Vec::new(),
            grant: Some(Arc::clone(&grant.id)),
            approvals: None,
            earlier: Vec::new(),
            result: None,
            world: None,
            unknown: None,
            arguments: RecordedArguments::Masked(shown_arguments),
            seal: None,
        }
    }

    /// Creates the refused record of a decision on a call that is not suspended, with the arguments of the call's
    /// existing record. `None` if the call named no tool: such a call is never suspended.
    pub(crate) fn late(
        known: AuditRecord,
        decision: DecisionKind,
        decider: Option<&Decider>,
        at: Timestamp,
    ) -> Option<Self> {
        Self::of_call(known, decision, decider, at).map(Self::not_pending)
    }

    /// Creates the record of a decision on a call that ended, with the arguments of the call's existing record. `None`
    /// if the call named no tool.
    pub(crate) fn of_call(
        known: AuditRecord,
        decision: DecisionKind,
        decider: Option<&Decider>,
        at: Timestamp,
    ) -> Option<Self> {
        Some(Self {
            run_id: Arc::clone(known.run_id()),
            call_id: known.call_id().clone(),
            tool: ToolName::foreign(known.tool()).ok()?,
            principal: known.principal().cloned(),
            tenant: known.tenant().cloned(),
            decider: decider.cloned(),
            decision,
            refused: None,
            question: None,
            at,
            argument_digest: None,
            edited_digest: None,
            changes: Vec::new(),
            grant: None,
            approvals: None,
            earlier: Vec::new(),
            result: None,
            world: None,
            unknown: None,
            arguments: match known {
                AuditRecord::Call(call) => call.arguments,
                AuditRecord::Decision(decision) => decision.arguments,
                AuditRecord::Retention(_) | AuditRecord::Erased(_) => RecordedArguments::Masked(JsonText::null()),
            },
            seal: None,
        })
    }

    /// Returns the same decision, refused because its call asks another question now.
    pub(crate) fn of_another_question(self) -> Self {
        self.mismatched(DecisionError::Question)
    }

    /// Returns the same decision, refused because its call is not suspended.
    pub(crate) fn not_pending(self) -> Self {
        self.mismatched(DecisionError::NotPending)
    }

    /// Returns the same decision, which arrived after its call had expired.
    pub(crate) fn too_late(self) -> Self {
        Self { decision: DecisionKind::TooLate, refused: None, approvals: None, earlier: Vec::new(), ..self }
    }

    /// Returns the same decision, refused because the precondition is not the one that the decider was shown.
    pub(crate) fn of_another_world(self) -> Self {
        self.mismatched(DecisionError::World)
    }

    fn mismatched(self, mismatch: DecisionError) -> Self {
        let (outcome, mismatch) = (Outcome::ApprovalMismatch, Some(mismatch));
        // An approval that does not count is none of several.
        let refused = Some(DecisionRefusal { outcome, mismatch, violations: Vec::new() });
        Self { refused, approvals: None, earlier: Vec::new(), ..self }
    }
}

fn pairs(stated: &[(String, String)]) -> impl ExactSizeIterator<Item = (&str, &str)> {
    stated.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}
