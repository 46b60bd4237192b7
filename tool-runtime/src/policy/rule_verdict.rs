//! [`RuleVerdict`]: the verdict of a single rule.

use serde::{Deserialize, Serialize};

/// The verdict of a single rule. A rule never allows: only the lists of tools do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleVerdict {
    /// The call does not run.
    Deny,
    /// The call waits for a person.
    RequireApproval,
}
