//! The Model Context Protocol (MCP): a server that offers the tools of a catalog to clients, and a client that adds the
//! tools of MCP servers to a catalog.
//!
//! | module | feature | what it does | MSRV |
//! | --- | --- | --- | --- |
//! | [`serve`] | `mcp-server` | serves the tools of a runner over standard input and output, or over HTTP | 1.88 |
//! | [`source`] | `mcp-client` | adds the tools of untrusted servers to a catalog | 1.88 |
//!
//! The server uses the crate `rmcp` for the protocol. The client has its own implementation. In both directions every
//! call passes through the gate, which checks the arguments, applies the policy, redacts the result and records the
//! call.

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
