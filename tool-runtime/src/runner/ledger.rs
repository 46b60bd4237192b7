//! A run's access to the ledger: calls that began and their ends, accounts of budgets, and calls whose process is gone.

pub(super) mod accounts;
pub(super) mod client;
pub(super) mod digests;
pub(super) mod engine_lease;
pub(super) mod lease_time;
pub(super) mod look_up;
pub(super) mod orphans;
pub(crate) mod recover;
pub(super) mod unfinished;
