//! Catalogs: what is linked, what collides, and which edits of a definition a lock reports.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod agreement;
mod linked;
mod lock;
