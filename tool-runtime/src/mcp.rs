//! The Model Context Protocol (MCP), both ways: a catalog as a server's tools, and servers as a source of tools.
//!
//! | module | feature | what it does | oldest Rust |
//! | --- | --- | --- | --- |
//! | [`serve`] | `mcp-server` | serves the tools of a runner, over standard input and output or HTTP | 1.88 |
//! | [`source`] | `mcp-client` | brings in the tools of untrusted servers | 1.88 |
//!
//! The server side uses the crate `rmcp` for the protocol; the client side implements it itself. Every call goes
//! through the gate.

#[cfg(feature = "mcp-server")]
mod effect;
#[cfg(feature = "mcp-server")]
mod name;
mod scan;
#[cfg(feature = "mcp-server")]
pub mod serve;
#[cfg(feature = "mcp-client")]
pub mod source;
