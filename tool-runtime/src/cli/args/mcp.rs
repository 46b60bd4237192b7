//! The grammar of `mcp`.

#[cfg(feature = "mcp-server")]
use std::net::SocketAddr;

#[cfg(feature = "mcp-client")]
use clap::Args;
use clap::Subcommand;

#[cfg(feature = "mcp-client")]
use super::Command;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum McpAction {
    /// Serve the tools: over standard input and output, to one client that started this process, or over HTTP
    #[cfg(feature = "mcp-server")]
    Serve {
        /// Listen on a loopback address instead, under the path /mcp; port 0 is a free one
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
        http: Option<SocketAddr>,
    },
    /// Show what servers offer: each tool with its state under the policy, its pin, and why it is kept out
    #[cfg(feature = "mcp-client")]
    Tools(Servers),
    /// Write the pins of tools into the policy file (`--policy`), after showing what changed in their definitions
    #[cfg(feature = "mcp-client")]
    Pin {
        #[command(flatten)]
        servers: Servers,
        /// A tool to pin, by its name here; repeat it for several; all that are not kept out by default
        #[arg(long = "tool", value_name = "NAME")]
        tools: Vec<String>,
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
pub(in crate::cli) struct Servers {
    /// The id of the server that is named here
    #[arg(long, value_name = "ID", default_value = "server")]
    pub(in crate::cli) id: String,
    /// The URL of a server
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(in crate::cli) url: Option<String>,
    /// A variable of the environment that the command gets, beside PATH; repeat it for several
    #[arg(long = "env", value_name = "NAME")]
    pub(in crate::cli) env: Vec<String>,
    /// The command of a server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<String>,
}

#[cfg(feature = "mcp-client")]
impl Command {
    /// Whether the command looks at the catalog, which the servers of the configuration file belong to.
    pub(in crate::cli) const fn is_about_tools(&self) -> bool {
        #[cfg(feature = "mcp-server")]
        if matches!(self, Self::Mcp { action: McpAction::Serve { .. } }) {
            return true;
        }
        matches!(
            self,
            Self::List
                | Self::Show { .. }
                | Self::Export { .. }
                | Self::Check(_)
                | Self::Call(_)
                | Self::Chat(_)
                | Self::Approvals { .. }
                | Self::Policy { .. }
                | Self::Worker(_)
                | Self::Replay { .. }
        )
    }
}
