//! The grammar of `mcp`.

use std::net::SocketAddr;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum McpAction {
    /// Serve the tools: over standard input and output, to one client that started this process, or over HTTP
    Serve {
        /// Listen on a loopback address instead, under the path /mcp; port 0 is a free one
        #[arg(long, value_name = "ADDRESS:PORT")]
        http: Option<SocketAddr>,
    },
}
