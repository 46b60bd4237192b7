//! Connects to the MCP servers of a command.

use tool_runtime::mcp::source::ToolSource;

use crate::exit::Failure;
use crate::mcp::settings;
use crate::mcp::settings::Servers;
use crate::session::Cli;

/// Whether a note of [`ToolSource::notes`] is about a server that does not answer.
pub(super) fn is_down(note: &str) -> bool {
    note.starts_with("down: ")
}

/// Connects to the server that a command names, or to the servers of the configuration file.
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
    let source = settings::start(servers)?;
    source.wait_for_all().await;
    Ok(source)
}
