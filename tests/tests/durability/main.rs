//! State that outlives a process: the ledger, shared budgets, stored conversations, workers, and interrupted calls.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod budgets;
mod cut;
mod durable;
#[cfg(unix)]
mod files;
mod ledger;
mod long;
mod lost;
mod migrated;
mod notices;
mod once;
mod purged;
mod recovered;
mod settled;
mod steps;
mod twins;
mod worker;
