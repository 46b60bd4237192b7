//! Tests of tools through the gate: [`harness`] presets everything that a runner needs, records what calls do with
//! capabilities, injects faults, and prints the record of a call that ends otherwise than a test expects.
//! `ScriptedModel` (feature `agent`) takes the place of a model, [`ManualClock`] that of the wall clock. `conformance`
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

// `assert_catalog_ok!` expands to a call of it.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use agreement::disagreements;
pub use fault::Fault;
pub use harness::{Harness, harness};
pub use manual_clock::ManualClock;
#[cfg(feature = "agent")]
pub use scripted_model::{ScriptedModel, ScriptedTurn};
pub use test_call::TestCall;

/// The promises of every [`Store`](crate::store::Store), as cases that any implementation can run.
#[cfg(feature = "testing")]
pub mod conformance {
    pub use crate::store::conformance::check;
}
