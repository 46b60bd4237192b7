//! A catalog as the tools of an MCP server, seen by the client of `rmcp`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

#[path = "mcp_serve/auth.rs"]
mod auth;
#[path = "mcp_serve/calls.rs"]
mod calls;
#[path = "mcp_serve/ends.rs"]
mod ends;
#[path = "mcp_serve/held.rs"]
mod held;
#[path = "mcp_serve/http.rs"]
mod http;
#[cfg(unix)]
#[path = "mcp_serve/killed.rs"]
mod killed;
#[path = "mcp_serve/lost.rs"]
mod lost;
#[path = "mcp_serve/rig.rs"]
mod rig;
#[path = "mcp_serve/scripts.rs"]
mod scripts;
#[path = "mcp_serve/strict.rs"]
mod strict;
#[path = "mcp_serve/tasks.rs"]
mod tasks;
