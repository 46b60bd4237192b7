//! Helpers for tests. [`harness`] runs tools through a real runner: it presets everything that a runner needs, records
//! calls of capabilities, and injects faults. If an assertion on a call fails, it prints the call's record.
//! `ScriptedModel` (feature `agent`) replaces a model, and [`ManualClock`] replaces the wall clock. `conformance`
//! (feature `testing`) tests stores.

#[cfg(feature = "testing")]
mod agreement;
mod capability_calls;
mod fault;
mod harness;
mod manual_clock;
#[cfg(feature = "agent")]
mod scripted_model;
mod test_call;

// Public because `assert_catalog_ok!` expands to a call of this function.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use agreement::disagreements;
pub use fault::Fault;
pub use harness::{Harness, harness};
pub use manual_clock::ManualClock;
#[cfg(feature = "agent")]
pub use scripted_model::{ScriptedModel, ScriptedTurn};
pub use test_call::TestCall;

/// Test cases for the promises of [`Store`](crate::store::Store), which any implementation can run.
#[cfg(feature = "testing")]
pub mod conformance {
    pub use crate::store::conformance::check;
}
