//! MCP servers as a source of untrusted tools (feature `mcp-client`).
//!
//! The client reads the answers of servers within limits, one tool and one content block at a time. An answer never
//! enables a tool: only a policy that pins the hash of the tool's definition does. The client does not use the message
//! types of an MCP library, because these drop unknown members, and a pin covers everything that a server published.

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
