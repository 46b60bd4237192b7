//! The grammar of `mcp`.

#[cfg(feature = "mcp-server")]
use std::net::SocketAddr;

#[cfg(feature = "mcp-client")]
use clap::Args;
use clap::Subcommand;

#[cfg(feature = "mcp-client")]
use super::{Command, Policy};

#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Serve the tools: over standard input and output, to one client that started this process, or over HTTP
    ///
    /// A policy that can ask for an approval needs a store that `approvals` shares, such as `--store sqlite:shared.db`;
    /// without one the server does not start. The policy says how long the request of a call that waits is held
    /// (`[mcp] hold`, such as "45s"; without it the request is answered at once), and how long the run of a session lasts
    /// (`[mcp] window`, an hour by default). After that the same call, made again, gets what was decided.
    #[cfg(feature = "mcp-server")]
    Serve {
        /// Listen on a loopback address instead, under the path /mcp; port 0 is a free one
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
        http: Option<SocketAddr>,
    },
    /// Show what servers offer: each tool with its state under the policy, its pin, and why it is kept out
    #[cfg(feature = "mcp-client")]
    Tools(Servers),
    /// Write the pins of the tools that the policy allows into its file (`--policy`), after showing what changed in their
    /// definitions; a tool without an allowlist gets `redact = []`, to be filled in
    #[cfg(feature = "mcp-client")]
    Pin {
        #[command(flatten)]
        servers: Servers,
        /// A tool to pin, by its name here; repeat it for several; those that the policy allows by default
        #[arg(long = "tool", value_name = "NAME")]
        tools: Vec<String>,
        /// Pin all tools that are not kept out
        #[arg(long, conflicts_with = "tools")]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Reads an address to listen on.
#[cfg(feature = "mcp-server")]
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:8080, or 127.0.0.1:0 for a free port")
}

/// The servers that a command is about: those of the configuration file, or one that is named here.
#[cfg(feature = "mcp-client")]
#[derive(Debug, Args)]
pub(crate) struct Servers {
    /// The id of the server that is named here
    #[arg(long, value_name = "ID", default_value = "server")]
    pub(crate) id: String,
    /// The URL of a server
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A variable of the environment that the command gets, beside PATH; repeat it for several
    #[arg(long = "env", value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// The command of a server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The servers of the configuration file that a command waits for before it begins.
#[cfg(feature = "mcp-client")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Awaited<'a> {
    /// All of them.
    All,
    /// The server of this tool; none if the tool is the application's own.
    Of(&'a str),
    /// None: they are brought in while the command runs.
    Later,
}

#[cfg(feature = "mcp-client")]
impl Command {
    /// The servers that the command waits for; `None` for one that does not look at the catalog.
    pub(crate) fn awaited(&self) -> Option<Awaited<'_>> {
        match self {
            #[cfg(feature = "mcp-server")]
            Self::Mcp { action: McpAction::Serve { .. } } => Some(Awaited::Later),
            Self::Call(call) => Some(Awaited::Of(&call.name)),
            Self::Show { name, .. } => Some(Awaited::Of(name)),
            Self::Policy { action: Policy::Explain(explain) } => Some(Awaited::Of(&explain.name)),
            Self::List
            | Self::Export { .. }
            | Self::Check(_)
            | Self::Chat(_)
            | Self::Approvals { .. }
            | Self::Policy { .. }
            | Self::Worker(_) => Some(Awaited::All),
            _ => None,
        }
    }
}
