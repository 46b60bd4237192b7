//! The Model Context Protocol (MCP): servers as a source of tools.
//!
//! | module | feature | what it does | oldest Rust |
//! | --- | --- | --- | --- |
//! | [`source`] | `mcp-client` | brings in the tools of servers that nobody trusts | 1.88 |

#[cfg(feature = "mcp-client")]
pub mod source;
