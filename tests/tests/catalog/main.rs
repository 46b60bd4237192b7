//! Catalogs: linked tools, collisions, and the edits of a definition that a lock reports.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod agreement;
mod harness;
mod linked;
mod lock;
