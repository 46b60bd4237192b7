//! The gate: the checks that every call passes before and after its tool runs. [`exec`] lists them in order.

pub(super) mod call_client;
pub(super) mod deliver;
pub(super) mod draft;
pub(super) mod ending;
pub(super) mod exec;
pub(super) mod graph;
pub(super) mod invoke;
pub(super) mod open;
pub(super) mod pending;
pub(super) mod spans;
pub(super) mod stages;
