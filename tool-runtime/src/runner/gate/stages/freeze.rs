//! Freeze: makes the arguments final. No later stage can change them.

use crate::hydrate::Hydrated;
use crate::runner::gate::open::OpenCall;

/// A hydrated call whose arguments no longer change. Only [`freeze`] makes one, and [`decide`](super::decide) takes it.
pub(in crate::runner) struct FrozenCall {
    pub(super) hydrated: Hydrated,
}

/// Freezes the arguments of a call. They are valid, so the tool's count of mistakes is reset.
#[inline]
pub(in crate::runner) fn freeze(open: &OpenCall, hydrated: Hydrated) -> FrozenCall {
    open.run().remembered().passed(hydrated.frozen.entry.spec.name.as_str());
    FrozenCall { hydrated }
}
