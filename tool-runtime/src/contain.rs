//! Containing panics of authors' code: a panic ends where it is caught, its payload and all.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code that may panic; nothing when it did.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Drops a value whose destructor may panic.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // A payload whose own destructor panics could go on for ever; it is leaked instead.
        std::mem::forget(payload);
    }
}
