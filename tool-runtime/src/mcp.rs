//! The Model Context Protocol (MCP), both ways: a catalog as a server's tools, and servers as a source of tools.
//!
//! | module | feature | what it does | oldest Rust |
//! | --- | --- | --- | --- |
//! | [`serve`] | `mcp-server` | serves the tools of a runner, over standard input and output or HTTP | 1.88 |
//! | [`source`] | `mcp-client` | brings in the tools of servers that nobody trusts | 1.88 |
//!
//! The wire of a server here is the crate `rmcp`'s, that of a client its own; every call goes through the gate.

#[cfg(feature = "mcp-server")]
mod effect;
#[cfg(feature = "mcp-server")]
mod name;
mod scan;
#[cfg(feature = "mcp-server")]
pub mod serve;
#[cfg(feature = "mcp-client")]
pub mod source;
