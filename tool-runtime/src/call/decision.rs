//! [`Decision`]: what the policy says of a call, with the rule that said it.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A decision of the policy and the rule that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Decision {
    /// What it says.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// The rule that said it, in the policy's own terms, for example `roles.admin.denied_tools`.
    pub rule: Cow<'static, str>,
}

impl Decision {
    /// A verdict and the rule behind it.
    #[must_use]
    pub fn new(verdict: Verdict, rule: impl Into<Cow<'static, str>>) -> Self {
        Self { verdict, rule: rule.into() }
    }
}

/// Allow, deny or require approval.
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
    /// The word used in records.
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
