//! Reports of what fails: log lines, the operators' sink, and parts of the application whose panics stay inside.

pub(super) mod contained;
pub(super) mod failure;
pub(super) mod telemetry;
