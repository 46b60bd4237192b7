//! MCP servers as a source of untrusted tools (feature `mcp-client`).
//!
//! Answers of servers are read within limits, one tool and one block at a time, and enable nothing: only a policy that
//! pins a definition does. The protocol is implemented without a typed client, because such a client drops unknown
//! members, and a pin covers everything that a server published.

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
pub use servers::ToolSource;
pub use tool::McpTool;
