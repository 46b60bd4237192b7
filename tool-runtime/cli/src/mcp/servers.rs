//! The servers that a command is about.

use std::collections::BTreeMap;

use tool_runtime::mcp::source::{RemoteServer, ToolSource};

use crate::args::Servers;
use crate::exit::Failure;
use crate::mcp::settings;
use crate::session::Cli;
use crate::terminal;

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
    let source = start(servers)?;
    source.wait_for_all().await;
    Ok(source)
}

/// Starts to connect to servers. One that cannot be reached is noted by the commands that need it.
pub(crate) fn start(servers: Vec<RemoteServer>) -> Result<ToolSource, Failure> {
    ToolSource::start(servers).map_err(|error| Failure::usage(error.to_string()).code("config"))
}

/// Prints what operators should know of servers.
pub(crate) fn note(notes: &BTreeMap<String, String>) {
    for (server, note) in notes {
        terminal::note(&terminal::safe_lines(&format!("the server `{server}`: {note}")));
    }
}
