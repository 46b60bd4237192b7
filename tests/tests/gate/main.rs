//! The gate: what each of its checks refuses, how calls end, and what they may use.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod account;
mod code_mode;
mod contained;
mod ends;
mod limits;
mod mistakes;
mod protect;
mod stages;
