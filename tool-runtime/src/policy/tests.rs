//! Cases of the policy: reading, deciding, checking.

mod check;
mod decide;
mod read;
mod restored;
mod servers;

use crate::tool::{ToolEffect, ToolSpec};

/// A definition. Only its name and its effect matter.
pub(super) fn spec(name: &str, effect: ToolEffect) -> ToolSpec {
    ToolSpec { effect, ..ToolSpec::plain(name) }
}
