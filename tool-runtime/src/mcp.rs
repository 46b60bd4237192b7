//! The Model Context Protocol (MCP), server and client: serves the tools of a catalog, and adds tools of MCP servers to
//! a catalog.
//!
//! | module | feature | what it does | MSRV |
//! | --- | --- | --- | --- |
//! | [`serve`] | `mcp-server` | serves the tools of a runner, over standard input and output or HTTP | 1.88 |
//! | [`source`] | `mcp-client` | adds the tools of untrusted servers | 1.88 |
//!
//! The server uses the crate `rmcp` for the protocol; the client has its own implementation. All calls go through the
//! gate.

#[cfg(feature = "mcp-server")]
mod effect;
mod header;
#[cfg(feature = "mcp-server")]
mod name;
mod scan;
#[cfg(feature = "mcp-server")]
pub mod serve;
#[cfg(feature = "mcp-client")]
pub mod source;
