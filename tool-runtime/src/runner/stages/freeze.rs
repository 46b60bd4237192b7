//! Freeze: from here on the arguments do not change.

use crate::hydrate::Hydrated;
use crate::runner::open::OpenCall;

/// The tool's consecutive failures are forgotten: this call's arguments are right.
pub(in crate::runner) fn freeze(open: &OpenCall, hydrated: &Hydrated) {
    open.run().state().passed(hydrated.entry.spec.name.as_str());
}
