//! [`Decision`]: a policy's verdict on a call, with the rule that led to it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A policy's verdict on a call, with the rule that led to it.
///
/// ```
/// use tool_runtime::call::Verdict;
/// use tool_runtime::policy::{PolicyContext, PolicyResource};
/// use tool_runtime::{ToolEffect, ToolPolicy};
///
/// let policy = ToolPolicy::allow(["core__add"]);
/// let decision = policy.admit(&PolicyContext::default(), &PolicyResource::new("core__add", ToolEffect::ReadOnly));
/// assert_eq!((decision.verdict, &*decision.rule), (Verdict::Allow, "allowed_tools"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that led to the verdict: its key in the policy, for example `roles.admin.denied_tools`; `grant:` and
    /// the id of a grant; or a rule of the runner, such as `unknown_outcome` or `graph.depth`.
    pub rule: Cow<'static, str>,
}

/// Allow, deny or require approval.
///
/// [`Decision`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call does not run.
    Deny,
    /// The call waits for a person.
    RequireApproval,
}

impl Verdict {
    /// Returns the word used in records: `allow`, `deny` or `require_approval`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RequireApproval => "require_approval",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
