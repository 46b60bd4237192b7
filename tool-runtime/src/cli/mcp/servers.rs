//! The servers that a command is about.

use crate::cli::args::Servers;
use crate::cli::exit::Failure;
use crate::cli::mcp::settings;
use crate::cli::session::Cli;
use crate::mcp::source::{RemoteServer, SourceError, ToolSource};

/// Connects to the servers that a command names, or to those of the configuration file.
pub(super) async fn source(cli: &Cli<'_>, named: &Servers) -> Result<ToolSource, Failure> {
    let servers = match settings::named(named)? {
        Some(server) => vec![server],
        None => settings::servers(&cli.settings.mcp)?,
    };
    if servers.is_empty() {
        let message = "no server is named; write a command after `--`, `--url`, or `[mcp.servers.ID]` in the \
                       configuration file";
        return Err(Failure::usage(message));
    }
    connect(servers).await
}

/// Connects to servers. One that cannot be reached is noted by the commands that are about it.
pub(in crate::cli) async fn connect(servers: Vec<RemoteServer>) -> Result<ToolSource, Failure> {
    let wrong = |error: SourceError| Failure::usage(error.to_string()).code("config");
    ToolSource::connect(servers).await.map_err(wrong)
}
