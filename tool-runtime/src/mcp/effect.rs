//! Converts the effect of a tool to the annotations of MCP (`readOnlyHint` and others).

use crate::tool::ToolEffect;

/// The four hints of a tool. The server always sends all four, because the protocol's defaults for absent hints are the
/// worst case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "the protocol has four booleans")]
pub(super) struct Hints {
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    pub(super) open_world: bool,
}

impl Hints {
    /// Returns the hints of a tool with this effect. `outside` is true if the tool reads data from outside the
    /// application, such as from an account of the principal.
    pub(super) const fn of(effect: ToolEffect, idempotent: bool, outside: bool) -> Self {
        match effect {
            ToolEffect::ReadOnly => Self { read_only: true, destructive: false, idempotent: true, open_world: outside },
            ToolEffect::StateChange => Self { read_only: false, destructive: true, idempotent, open_world: outside },
            ToolEffect::ExternalSideEffect => {
                Self { read_only: false, destructive: true, idempotent, open_world: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effect_sets_all_four_hints() {
        let hints = |effect| {
            let Hints { read_only, destructive, idempotent, open_world } = Hints::of(effect, false, false);
            [read_only, destructive, idempotent, open_world]
        };
        assert_eq!(hints(ToolEffect::ReadOnly), [true, false, true, false]);
        assert_eq!(hints(ToolEffect::StateChange), [false, true, false, false]);
        assert_eq!(hints(ToolEffect::ExternalSideEffect), [false, true, false, true]);
        assert!(Hints::of(ToolEffect::ReadOnly, false, true).open_world);
        assert!(Hints::of(ToolEffect::StateChange, true, false).idempotent);
    }
}
