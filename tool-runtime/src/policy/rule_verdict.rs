//! [`RuleVerdict`]: what a rule of a policy may ask for.

use serde::{Deserialize, Serialize};

/// What a rule may ask for. A rule never allows: only the lists of tools do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleVerdict {
    /// The call does not run.
    Deny,
    /// The call waits for a person.
    RequireApproval,
}
