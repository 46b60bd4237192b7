//! [`DecisionError`]: the reason why a decision does not fit a waiting call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why a decision on a waiting call does not count: the call or its run has changed, or the decider may not
/// decide.
///
/// [`ResumeError`](crate::runner::ResumeError) has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionError {
    /// The tool is gone, or its definition changed.
    Definition,
    /// The policy changed.
    Policy,
    /// The stored arguments do not match their digest, or the tool now reads other values from them.
    Arguments,
    /// The run gained a role, or lacks a role that the call needs.
    Roles,
    /// The principal of the run has other attributes.
    Attributes,
    /// The run has a tool that the call's run did not have, or lacks the tool of the call.
    Tools,
    /// The run has another [`Caller`](crate::call::Caller) than the run of the call.
    Caller,
    /// The run gained a label (a lasting mark) under which the policy denies the call.
    Labels,
    /// The clock shows a time before the call was suspended.
    Clock,
    /// The decision answers a question that the call no longer asks.
    Question,
    /// The precondition of the call (the outside values on which it depends) has changed since it was shown, or could
    /// not be read. The call waits with another question.
    World,
    /// The call does not wait: it was decided, answered or ended before. Also recorded for a valid decision that was
    /// refused together with another decision of the same request.
    NotPending,
    /// The decider is the principal that the run acts for, and the policy does not set `own_calls`.
    OwnCall,
    /// The decider has no role that the policy requires.
    DeciderRole,
    /// The policy names the principals who may decide, and the decider is not one of them.
    DeciderPrincipal,
    /// The decider belongs to another tenant.
    DeciderTenant,
    /// The decider has no name, or a name with invisible or control characters or with white space at its ends.
    DeciderName,
    /// The decider has approved the call before; another decider has to approve it.
    SameDecider,
    /// The call needs several approvals, so one person can neither supply its result nor allow later calls. A person
    /// cannot edit its arguments if it is the call of a graph, or if the edited call would need more approvals than the
    /// people named in the policies can give.
    SeveralDeciders,
    /// After this approval the call waits for other deciders, and the user's message in the same input would abandon
    /// the call. Send the approval without a message.
    WithMessage,
}

impl DecisionError {
    /// Returns a stable word for each case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Policy => "policy",
            Self::Arguments => "arguments",
            Self::Roles => "roles",
            Self::Attributes => "attributes",
            Self::Tools => "tools",
            Self::Caller => "caller",
            Self::Labels => "labels",
            Self::Clock => "clock",
            Self::Question => "question",
            Self::World => "world",
            Self::NotPending => "not_pending",
            Self::OwnCall => "own_call",
            Self::DeciderRole => "decider_role",
            Self::DeciderPrincipal => "decider_principal",
            Self::DeciderTenant => "decider_tenant",
            Self::DeciderName => "decider_name",
            Self::SameDecider => "same_decider",
            Self::SeveralDeciders => "several_deciders",
            Self::WithMessage => "with_message",
        }
    }
}

/// A sentence for operators.
impl fmt::Display for DecisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Definition => "the definition of the tool changed",
            Self::Policy => "the policy changed",
            Self::Arguments => "the stored arguments changed",
            Self::Roles => "the run has a role that the call's run did not have, or lacks one that the call needs",
            Self::Attributes => "the run's principal has other attributes than the call's run",
            Self::Tools => "the run has a tool that the call's run did not have, or lacks the tool of the call",
            Self::Caller => "the call comes from another caller",
            Self::Labels => "the run gained a label under which the policy denies the call",
            Self::Clock => "the clock shows a time before the call was suspended",
            Self::Question => "the decision answers a question that the call no longer asks; look at the call again",
            Self::World => {
                "the precondition of the call has changed since it was shown, or could not be read; look at the call again"
            }
            Self::NotPending => "the call does not wait; it was decided, answered or ended before",
            Self::OwnCall => {
                "the principal of a run cannot decide on its calls, unless the policy sets `own_calls = true`"
            }
            Self::DeciderRole => "the decider has no role that the policy requires",
            Self::DeciderPrincipal => {
                "the policy names the principals who may decide, and the decider is not one of them"
            }
            Self::DeciderTenant => "the decider belongs to another tenant",
            Self::DeciderName => {
                "the name of the decider is empty, has invisible or control characters, or begins or ends with a space"
            }
            Self::SameDecider => "the decider has approved the call before; another one has to approve it",
            Self::SeveralDeciders => {
                "the call needs several approvals, and one person cannot take this decision; approve or deny the call"
            }
            Self::WithMessage => {
                "the call waits for other approvals after this one, and a message would abandon it; send the approval alone"
            }
        })
    }
}
