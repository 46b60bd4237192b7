//! Freeze: from here on the arguments do not change.

use crate::hydrate::Hydrated;
use crate::runner::open::OpenCall;

/// Resets the tool's count of consecutive failures: the arguments of this call are valid.
#[inline]
pub(in crate::runner) fn freeze(open: &OpenCall, hydrated: &Hydrated) {
    open.run().remembered().passed(hydrated.frozen.entry.spec.name.as_str());
}
