//! Reports failures in log lines and to the operators' sink, and catches panics in the application's parts.

pub(super) mod contained;
pub(super) mod failure;
pub(super) mod telemetry;
