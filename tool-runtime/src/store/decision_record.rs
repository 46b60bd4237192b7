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

/// The record of a decision on a suspended call, or of an answer to such a call. An erased record lacks the principal,
/// the deciders, the question, the digests, the arguments and the other values.
///
/// [`AuditRecord`] has an example.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DecisionRecord {
    /// The id of the run.
    pub run_id: Arc<str>,
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The principal that the run acts for. `None` if the run has no principal.
    pub principal: Option<Arc<str>>,
    /// The tenant of the run. `None` if the run has no tenant.
    pub tenant: Option<Arc<str>>,
    /// The decider, with the reason. `None` if no person decided: the call expired, was abandoned, was answered by its
    /// client, or was reconciled by its tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decider: Option<Decider>,
    /// The decision.
    pub decision: DecisionKind,
    /// The reason why the decision was refused, in which case the call still waits. `None` if the decision was carried
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<DecisionRefusal>,
    /// The question that the decision answers. `None` for a grant, its revocation, a settlement, and a decision without
    /// a question: the call was abandoned, or answered by its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// When the decision was made.
    pub at: Timestamp,
    /// The digest of the exact arguments on which the decision was made. `None` if it is not known: for example, the
    /// call did not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_digest: Option<ArgumentDigest>,
    /// The digest of the edited arguments. `None` if the arguments were not edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_digest: Option<ArgumentDigest>,
    /// The changes of an edit, with sensitive values masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ArgumentChange>,
    /// The id of the grant that the decision made or revoked. `None` for a decision on this call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Arc<str>>,
    /// For one of several required approvals: the number of approvals so far, including this one, and the required
    /// number. The call waits until both are equal. `None` for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<(u32, u32)>,
    /// For the last of several required approvals: the other deciders whose approvals were counted. If a snapshot, a
    /// token or a graph brought an approval from another store, that store has its record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Decider>,
    /// The result of a call that is settled as [`Happened`](DecisionKind::Happened), with only the parts that the
    /// tool's allowlist names. `None` for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonText>,
    /// The precondition of the call. `None` if its tool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<Box<RecordedWorld>>,
    /// The state of the call when its unknown outcome was settled. `None` for every other decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<Box<RecordedUnknown>>,
    /// The masked arguments of the suspended call, or the masked edited arguments.
    pub(crate) arguments: RecordedArguments,
    /// The seal of the record. `None` before it is sealed, and for a record that is sealed in one part. The JSON of the
    /// [`AuditRecord`] contains it, and the JSON of this record does not.
    #[serde(skip)]
    pub(crate) seal: Option<Box<RecordSeal>>,
}

/// The kind of a decision on a suspended call.
///
/// [`AuditRecord`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionKind {
    /// The call may run unchanged.
    Approved,
    /// The call may run with other arguments.
    Edited,
    /// The call does not run.
    Denied,
    /// A person provided a result in the tool's place.
    Answered,
    /// The deadline passed without a decision.
    Expired,
    /// A decision or a client's answer arrived after the call had expired. It had no effect.
    TooLate,
    /// The call was closed without a decision.
    Abandoned,
    /// A grant was made from the call, which still waits. The grant decides on later calls like it.
    Remembered,
    /// The grant that was made from this call was revoked, so later calls require an approval again.
    Revoked,
    /// The client executed the call and returned its result.
    ClientResult,
    /// The client could not execute the call.
    ClientFailed,
    /// A person asked the tool to reconcile the call, whose outcome is unknown. `Happened` or `DidNotHappen` follows if
    /// the tool knows the outcome.
    Reconcile,
    /// The unknown outcome of the call was settled: the call took effect. Without a decider, its tool reconciled it.
    Happened,
    /// The unknown outcome of the call was settled: the call had no effect. Without a decider, its tool reconciled it.
    DidNotHappen,
}

/// The facts about an unknown outcome in the record of its settlement, in addition to ids and arguments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecordedUnknown {
    /// When the call was interrupted, or when the interruption was detected.
    pub(crate) since: Timestamp,
    /// The cause of the interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
    /// The effect key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect_key: Option<Arc<str>>,
}

/// The refusal of a decision or an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DecisionRefusal {
    /// The outcome that the refused decision would have given the call.
    pub(crate) outcome: Outcome,
    /// The difference between the call as it was suspended and as it would run now, or the reason why the decider may
    /// not decide. `None` if only the submitted values are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mismatch: Option<DecisionError>,
    /// The places at which the submitted values are invalid, without the expected values.
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

    /// Whether the decision is about later calls, so that it does not change the call itself.
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
    /// Returns the arguments on which the decision was made, with the sensitive ones masked. `None` if they could not
    /// be read.
    #[must_use]
    pub fn shown_arguments(&self) -> Option<&JsonText> {
        self.arguments.shown()
    }

    /// Returns the length in bytes and the digest of arguments that could not be read. `None` if they could be read.
    #[must_use]
    pub fn unread_arguments(&self) -> Option<(usize, ArgumentDigest)> {
        self.arguments.unread()
    }

    /// Whether the call still waits for the approvals of other deciders after this one.
    pub(crate) fn is_partial(&self) -> bool {
        self.approvals.is_some_and(|(given, required)| given < required)
    }

    /// Returns the outcome that a refused decision would have given the call. `None` if the decision was carried out.
    #[must_use]
    pub fn refused(&self) -> Option<Outcome> {
        self.refused.as_ref().map(|refused| refused.outcome)
    }

    /// Returns the difference between the call as it was suspended and as it would run now, or the reason why the
    /// decider may not decide. `None` if the decision was carried out, or if only the submitted values are wrong.
    #[must_use]
    pub fn mismatch(&self) -> Option<DecisionError> {
        self.refused.as_ref()?.mismatch
    }

    /// Returns the places at which the submitted values are invalid, without the expected values.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.refused.as_ref().map_or(&[], |refused| &refused.violations)
    }

    /// Returns when a settled call was interrupted, or when the interruption was detected, and the cause as in
    /// [`ToolInvocationRecord::cause`](crate::ToolInvocationRecord::cause). `None` for every other decision. The JSON
    /// of the record also has the effect key of the call, as `unknown.effect_key`.
    #[must_use]
    pub fn interruption(&self) -> Option<(Timestamp, Option<&'static str>)> {
        self.unknown.as_ref().map(|unknown| (unknown.since, unknown.cause.map(Cause::as_str)))
    }

    /// Returns the statements of the tool's precondition that were shown to the decider, as names and values.
    #[must_use]
    pub fn shown_statements(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        pairs(self.world.as_deref().map_or(&[], |world| &world.shown))
    }

    /// Returns the statements immediately before the approved call began, or would have begun. If they differ from the
    /// [shown statements](Self::shown_statements), the decision is refused. `None` if the decision does not let the
    /// call begin, or if the statements could not be read or do not exist.
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

    /// Creates the record of a decision that is refused because its call is not suspended. The arguments are those of
    /// the call's existing record. `None` if that record names no tool: such a call is never suspended.
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

    /// Returns the same decision, refused because the question of the call has changed.
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

    /// Returns the same decision, refused because the precondition has changed since it was shown to the decider.
    pub(crate) fn of_another_world(self) -> Self {
        self.mismatched(DecisionError::World)
    }

    fn mismatched(self, mismatch: DecisionError) -> Self {
        let (outcome, mismatch) = (Outcome::ApprovalMismatch, Some(mismatch));
        // A refused approval is not a partial approval.
        let refused = Some(DecisionRefusal { outcome, mismatch, violations: Vec::new() });
        Self { refused, approvals: None, earlier: Vec::new(), ..self }
    }
}

fn pairs(stated: &[(String, String)]) -> impl ExactSizeIterator<Item = (&str, &str)> {
    stated.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}
