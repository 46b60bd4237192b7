//! `mcp`: serves tools over the Model Context Protocol, and pins the tools of MCP servers.

#[cfg(feature = "mcp-client")]
mod connections;
#[cfg(feature = "mcp-client")]
mod edit;
#[cfg(feature = "mcp-client")]
mod pin;
#[cfg(feature = "mcp-client")]
mod process;
#[cfg(feature = "mcp-server")]
mod serve;
#[cfg(feature = "mcp-client")]
mod servers;
#[cfg(feature = "mcp-client")]
pub(crate) mod settings;
#[cfg(feature = "mcp-client")]
mod tools;

#[cfg(feature = "mcp-server")]
use std::net::SocketAddr;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
#[cfg(feature = "mcp-client")]
use crate::mcp::settings::Servers;
use crate::session::Cli;

#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Serve the tools: over standard input and output, to one client that started this process, or over HTTP
    ///
    /// A policy that can require an approval needs a store that `approvals` shares, such as `--store sqlite:shared.db`;
    /// without one the server does not start. The policy sets how long the request of a call that waits is held
    /// (`[mcp] hold`, such as "45s"; without it the request is answered at once), and how long the run of a session
    /// lasts (`[mcp] window`, an hour by default). After the hold, the client gets the decision if it makes the call
    /// again.
    #[cfg(feature = "mcp-server")]
    Serve {
        /// Listen on a loopback address instead, under the path /mcp; port 0 is a free one
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
        http: Option<SocketAddr>,
    },
    /// Show the tools of the servers, each with its state under the policy, its pin, and why it is kept out
    #[cfg(feature = "mcp-client")]
    Tools(Servers),
    /// Write the pins of the tools that the policy allows into its file (`--policy`), after showing what changed in
    /// their definitions; a tool without an allowlist gets `redact = []`, to be filled in
    #[cfg(feature = "mcp-client")]
    Pin {
        #[command(flatten)]
        servers: Servers,
        /// A tool to pin, by its name in the catalog; repeat it for several. By default all tools that the policy
        /// allows
        #[arg(long = "tool", value_name = "NAME")]
        tools: Vec<String>,
        /// Pin all tools that are not kept out
        #[arg(long, conflicts_with = "tools")]
        all: bool,
        /// Write the pins without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Parses an address to listen on.
#[cfg(feature = "mcp-server")]
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8080, or 127.0.0.1:0 for a free port")
}

pub(super) async fn mcp(cli: &Cli<'_>, action: McpAction) -> Result<Exit, Failure> {
    match action {
        #[cfg(feature = "mcp-server")]
        McpAction::Serve { http } => serve::serve(cli, http).await,
        #[cfg(feature = "mcp-client")]
        McpAction::Tools(servers) => tools::tools(cli, &servers).await,
        #[cfg(feature = "mcp-client")]
        McpAction::Pin { servers, tools, all, yes } => pin::pin(cli, &servers, (&tools, all), yes).await,
    }
}
