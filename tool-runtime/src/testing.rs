//! Tests of tools through the gate: [`harness`] presets everything that a runner needs, injects faults, and prints the
//! record of a call that ends otherwise than a test expects. [`conformance`] tests stores.

#[cfg(feature = "testing")]
mod agreement;
mod fault;
mod harness;

#[cfg(feature = "testing")]
pub use agreement::disagreements;
pub use fault::Fault;
pub use harness::{Harness, TestCall, harness};

/// The promises of every [`Store`](crate::store::Store), as cases that any implementation can run.
pub mod conformance {
    pub use crate::store::conformance::{check, document, record};
}
