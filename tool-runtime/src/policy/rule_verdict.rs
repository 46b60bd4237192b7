//! [`RuleVerdict`]: the verdict of a single rule.

use serde::{Deserialize, Serialize};

/// The verdict of a single rule. Only lists of tools can allow a call, so a rule cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleVerdict {
    /// The call does not run.
    Deny,
    /// The call waits for a person.
    RequireApproval,
}
