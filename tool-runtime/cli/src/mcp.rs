//! `mcp`: the Model Context Protocol at the command line.

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

use crate::args::McpAction;
use crate::exit::{Exit, Failure};
use crate::session::Cli;

#[cfg(feature = "mcp-client")]
pub(super) use servers::{note, start};

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
