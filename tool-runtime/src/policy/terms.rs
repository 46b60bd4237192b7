//! [`Terms`]: a policy's rules for every call of one tool.

use crate::policy::ToolLimits;
use crate::tool::ToolEffect;

/// The rules for each call of a tool, found with one look-up.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// The tool's effect under the policy.
    pub(crate) effect: ToolEffect,
    pub(crate) limits: ToolLimits,
    /// Whether a decision can depend on the arguments.
    pub(crate) has_argument_rules: bool,
}

impl Terms {
    /// Combines the terms of two policies that both apply.
    pub(super) fn strictest(self, other: &Self) -> Self {
        Self {
            effect: self.effect.max(other.effect),
            limits: self.limits.least(other.limits),
            has_argument_rules: self.has_argument_rules || other.has_argument_rules,
        }
    }
}
