//! `mcp`: the Model Context Protocol at the command line.

mod edit;
mod pin;
pub(in crate::cli) mod settings;
mod tools;

use crate::cli::args::{McpAction, Servers};
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;
use crate::mcp::source::{SourceError, ToolSource};

pub(super) async fn mcp(cli: &Cli<'_>, action: McpAction) -> Result<Exit, Failure> {
    match action {
        McpAction::Tools(servers) => tools::tools(cli, &servers).await,
        McpAction::Pin { servers, tools, yes } => pin::pin(cli, &servers, &tools, yes).await,
    }
}

/// Connects to the servers that a command names, or to those of the configuration file.
async fn source(cli: &Cli<'_>, named: &Servers) -> Result<ToolSource, Failure> {
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
pub(super) async fn connect(servers: Vec<crate::mcp::source::RemoteServer>) -> Result<ToolSource, Failure> {
    let wrong = |error: SourceError| Failure::usage(error.to_string()).code("config");
    ToolSource::connect(servers).await.map_err(wrong)
}
