//! Calls that wait for a person or a client, who may decide on them, and the access of runs to the outside.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod outside;
mod untrusted;
mod waiting;
mod world;
