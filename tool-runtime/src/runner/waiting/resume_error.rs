//! [`ResumeError`]: the reason why a waiting call or its run cannot be continued.

use std::error::Error;
use std::fmt;

use crate::call::{CallId, DecisionError, SafeError, ToolExecResult};
use crate::store::StoreError;

/// The reason why a waiting call cannot be finished, a decision on it cannot be remembered, or its run cannot be
/// restored, sealed, opened, enqueued or found. Apart from the record of a refused attempt, nothing was changed, and a
/// call that waited still waits. After [`Store`](Self::Store), the change may have been made.
///
/// ```
/// use tool_runtime::call::{Decider, DecisionError};
/// use tool_runtime::runner::{ApprovalDecision, ResumeError};
/// use tool_runtime::{RunOptions, ToolCatalog, ToolEffect, ToolError, ToolPolicy, testing, tool};
///
/// # /// Deletes the note.
/// # #[tool(name = "notes__delete", effect = state_change, redact = ["$"])]
/// # fn delete() -> Result<String, ToolError> { Ok("deleted".to_owned()) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let policy = ToolPolicy::allow(["notes__delete"]).with_approval_for_effects([ToolEffect::StateChange]);
/// let harness = testing::harness(ToolCatalog::builder().tool::<delete>().build()?)
///     .policy(policy)
///     .options(RunOptions::new().principal("ada"));
/// let waits = harness.call("notes__delete", serde_json::json!({})).await;
/// let question = waits.question().ok_or("the call does not wait")?;
///
/// // The principal of a run does not decide on its own calls.
/// let refused = harness.run().resume(question, ApprovalDecision::Approve, &Decider::new("ada")).await;
/// assert!(matches!(refused, Err(ResumeError::NotAllowed(DecisionError::OwnCall))));
/// let ended = harness.run().resume(question, ApprovalDecision::Approve, &Decider::new("grace")).await?;
/// assert_eq!(ended.to_model(), "deleted");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ResumeError {
    /// No call with this id waits for this decision or result. The call never waited, was finished before, waits for a
    /// person instead of a client or the reverse, belongs to another principal or tenant, or was named twice. A decider
    /// of another tenant gets this error too.
    NotWaiting(CallId),
    /// The decider may not decide on this call, or a posted decision or a grant answers another question than the
    /// current one. The attempt is recorded.
    NotAllowed(DecisionError),
    /// The snapshot, or a call that waits in it, belongs to another principal or tenant than the options name.
    OtherPrincipal,
    /// The options name another caller than the snapshot.
    OtherCaller,
    /// The run was continued under more than 16 policies other than the runner's, or with more than 16 sets of roles
    /// and attributes. Start a new run.
    TooManyPolicies,
    /// The tool has external effects, so its grants need both a number of uses and an expiry.
    GrantUnbounded,
    /// The grant does not match the call. Its scope names another run or conversation, or the principal of a run that
    /// has none; a grant that denies has a number of uses, or a grant that allows has zero; the lifetime is zero; the
    /// call's arguments were repaired; or the call is a graph that waits for an inner call.
    GrantScope,
    /// The text is not a valid list of conditions of a grant.
    GrantConditions(String),
    /// The waiting call does not meet the condition on the argument at this pointer. A grant has to cover the call that
    /// the decider saw.
    GrantUnmet(String),
    /// The text is not a sealed token, or was changed.
    TokenForged,
    /// The key that sealed the token is not in the ring.
    TokenKeyUnknown,
    /// Another version of the library sealed the token.
    TokenVersion,
    /// The call of the token expired.
    TokenExpired,
    /// The call of the token belongs to another tenant.
    OtherTenant,
    /// The suspended call differs from the call that would run now.
    Mismatch(DecisionError),
    /// The edited arguments, or the value in place of the tool's output, do not match the tool, or the policy does not
    /// allow them. The error contains the violations.
    Invalid(Box<SafeError>),
    /// The system returned no random bytes.
    NoRandomness,
    /// The tenant has no such run.
    UnknownRun,
    /// Another process, such as a worker, has the run.
    Held,
    /// Records of the run have been missing since the store was restored from a backup. See
    /// [`release_run`](trait@crate::store::Store#method.release_run).
    HeldBack,
    /// A durable executor runs the conversation. Pass the decision to it.
    Engine,
    /// The store failed.
    Store(StoreError),
}

impl ResumeError {
    /// Returns the error for a decider who may not decide. A decider of another tenant gets the error of a call that
    /// does not exist.
    pub(crate) fn barred(call: &CallId, mismatch: DecisionError) -> Self {
        match mismatch {
            DecisionError::DeciderTenant => Self::NotWaiting(call.clone()),
            mismatch => Self::NotAllowed(mismatch),
        }
    }

    /// Converts the result of a decision that does not match its call to an error.
    pub(crate) fn invalid(result: &ToolExecResult) -> Self {
        let error = result.error().cloned().unwrap_or_else(|| SafeError::mismatched(DecisionError::Question));
        match error.mismatch {
            Some(mismatch) => Self::Mismatch(mismatch),
            None => Self::Invalid(Box::new(error)),
        }
    }

    /// Returns the stable code: `not_pending`, `not_allowed`, `other_principal`, `other_caller`, `too_many_policies`,
    /// `grant_unbounded`, `grant_scope`, `grant_conditions`, `grant_unmet`, `token_forged`, `token_key_unknown`,
    /// `token_version`, `token_expired`, `other_tenant`, `approval_mismatch`, `no_randomness`, `not_found`, `run_held`,
    /// `run_held_back`, `run_of_engine`, the code of the mismatch, or the code of the store's error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotWaiting(_) => "not_pending",
            Self::NotAllowed(_) => "not_allowed",
            Self::OtherPrincipal => "other_principal",
            Self::OtherCaller => "other_caller",
            Self::TooManyPolicies => "too_many_policies",
            Self::GrantUnbounded => "grant_unbounded",
            Self::GrantScope => "grant_scope",
            Self::GrantConditions(_) => "grant_conditions",
            Self::GrantUnmet(_) => "grant_unmet",
            Self::TokenForged => "token_forged",
            Self::TokenKeyUnknown => "token_key_unknown",
            Self::TokenVersion => "token_version",
            Self::TokenExpired => "token_expired",
            Self::OtherTenant => "other_tenant",
            Self::Mismatch(mismatch) => mismatch.code(),
            Self::Invalid(error) => error.error_code.code(),
            Self::NoRandomness => "no_randomness",
            Self::UnknownRun => "not_found",
            Self::Held => "run_held",
            Self::HeldBack => "run_held_back",
            Self::Engine => "run_of_engine",
            Self::Store(error) => error.code(),
        }
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting(_) => f.write_str("no call waits for this answer; it may have been answered already"),
            Self::TokenForged => f.write_str("this is not a token that was sealed here, or it was changed"),
            Self::TokenKeyUnknown => f.write_str("the token was sealed with a key that is no longer in use"),
            Self::TokenVersion => f.write_str("the token was sealed by another version of the library"),
            Self::TokenExpired => f.write_str("the token expired"),
            Self::OtherTenant => f.write_str("the token belongs to another tenant"),
            Self::NoRandomness => f.write_str("the system returned no random bytes"),
            Self::UnknownRun => f.write_str("there is no such run"),
            Self::Held => f.write_str("another process has the run; try again later"),
            Self::HeldBack => f.write_str("the run lacks records since the store was restored; release it first"),
            Self::Engine => f.write_str("a durable executor runs the conversation; pass the decision to it"),
            Self::NotAllowed(mismatch) | Self::Mismatch(mismatch) => fmt::Display::fmt(mismatch, f),
            Self::Invalid(error) => {
                f.write_str(&error.safe_message)?;
                error.errors.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
            }
            Self::OtherPrincipal => f.write_str("the snapshot belongs to another principal or tenant"),
            Self::OtherCaller => f.write_str("the calls of the snapshot come from another caller"),
            Self::TooManyPolicies => f.write_str("the run has too many policies, roles or attributes; start a new one"),
            Self::GrantUnbounded => {
                f.write_str("the tool has external effects; limit the grant's uses and set its end")
            }
            Self::GrantScope => {
                f.write_str("the scope, the number of uses or the time does not fit the call that waits")
            }
            Self::GrantConditions(why) => write!(f, "the conditions of the grant cannot be read: {why}"),
            Self::GrantUnmet(pointer) => write!(
                f,
                "the waiting call does not meet the condition on `{}`; write conditions that it meets",
                pointer.escape_debug()
            ),
            Self::Store(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for ResumeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}
