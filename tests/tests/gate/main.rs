//! The gate: the refusals of each check, the ends of calls, and their limits.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod account;
mod code_mode;
mod contained;
mod ends;
mod limits;
mod mistakes;
mod protect;
mod stages;
