//! [`RecordRule`]: the handling of calls whose record cannot be stored.

use serde::{Deserialize, Serialize};

/// The handling of calls whose record cannot be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordRule {
    /// Whether such a call is stopped; `false` by default. If it has already run, its result is withheld.
    pub required: bool,
}

impl RecordRule {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
