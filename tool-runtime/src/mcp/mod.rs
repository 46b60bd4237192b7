//! The Model Context Protocol (MCP): a catalog as a server's tools.
//!
//! | module | feature | what it does | oldest Rust |
//! | --- | --- | --- | --- |
//! | [`serve`] | `mcp-server` | serves the tools of a runner, over standard input and output or HTTP | 1.88 |
//!
//! The wire is the crate `rmcp`'s; every call goes through the gate.

#[cfg(feature = "mcp-server")]
mod effect;
#[cfg(feature = "mcp-server")]
mod name;
#[cfg(feature = "mcp-server")]
pub mod serve;
