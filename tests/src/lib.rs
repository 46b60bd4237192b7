//! Shared helpers of the tests.

pub mod corpus;
pub mod spans;
pub mod wire;
