//! Calls that wait for a person or a client, who may decide them, and what runs reach outside.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod outside;
mod untrusted;
mod waiting;
