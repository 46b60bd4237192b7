//! Reports of failures: log lines, the operators' sink, and the containment of panics in parts of the application.

pub(super) mod contained;
pub(super) mod failure;
pub(super) mod telemetry;
