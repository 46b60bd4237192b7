//! MCP in both directions: a catalog as a server, and servers as sources of tools.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

mod serve;
mod source;
