//! [`RecordRule`]: what becomes of a call whose record cannot be kept.

use serde::{Deserialize, Serialize};

use crate::policy::RunPolicy;

/// What becomes of a call whose record cannot be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RecordRule {
    /// It does not run, and the result of one that ran is withheld.
    pub required: bool,
}

impl RecordRule {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl RunPolicy {
    /// Whether any of the policies wants a record of each call.
    #[inline]
    pub(crate) fn requires_records(&self) -> bool {
        self.all().any(|policy| policy.data().records.required)
    }
}
