//! Freeze: from here on the arguments do not change.

use crate::hydrate::Hydrated;
use crate::runner::gate::open::OpenCall;

/// A hydrated call whose arguments do not change any more. Only [`freeze`] makes one, and [`decide`](super::decide) takes
/// it.
pub(in crate::runner) struct FrozenCall {
    pub(super) hydrated: Hydrated,
}

/// Freezes the arguments of a call. They are valid, so the count of the tool's mistakes begins again.
#[inline]
pub(in crate::runner) fn freeze(open: &OpenCall, hydrated: Hydrated) -> FrozenCall {
    open.run().remembered().passed(hydrated.frozen.entry.spec.name.as_str());
    FrozenCall { hydrated }
}
