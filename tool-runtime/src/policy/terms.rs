//! [`Terms`]: what a policy says of every call of one tool.

use crate::policy::ToolLimits;
use crate::tool::ToolEffect;

/// What holds for each call of a tool. Every call asks for all of it, and one look-up finds it.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    /// How far the tool reaches.
    pub(crate) effect: ToolEffect,
    pub(crate) limits: ToolLimits,
    /// Whether a decision can depend on the arguments.
    pub(crate) has_argument_rules: bool,
}

impl Terms {
    /// Those of two policies that both hold.
    pub(super) fn strictest(self, other: &Self) -> Self {
        Self {
            effect: self.effect.max(other.effect),
            limits: self.limits.least(other.limits),
            has_argument_rules: self.has_argument_rules || other.has_argument_rules,
        }
    }
}
