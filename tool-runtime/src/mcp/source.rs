//! MCP servers as a source of tools that nobody trusts (feature `mcp-client`).
//!
//! What a server says is read within limits, one tool and one block at a time, and enables nothing: only a policy that
//! pins a definition does. The protocol is spoken by hand, because a client with types drops what it does not know, and
//! a pin is over all that a server published.

mod accounts;
mod awaited;
mod config;
mod connection;
mod definition;
mod diagnostics;
mod error;
mod hints;
mod http;
mod list;
mod listen;
mod message;
mod process;
mod remote;
mod result;
mod server;
mod servers;
mod slug;
mod state;
mod stdio;
mod tasks;
mod tool;

pub use config::RemoteServer;
pub use definition::Quarantine;
pub use error::SourceError;
pub use servers::ToolSource;
pub use tool::{McpTool, McpToolState};
