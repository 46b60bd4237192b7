//! Shared helpers of the tests.

pub mod corpus;
pub mod failing;
pub mod provider;
pub mod recorded;
pub mod rig;
pub mod server;
pub mod six_turns;
pub mod spans;
pub mod wire;

/// The README's examples compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
