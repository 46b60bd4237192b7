//! `mcp`: the Model Context Protocol at the command line.

mod serve;

use crate::cli::args::McpAction;
use crate::cli::exit::{Exit, Failure};
use crate::cli::session::Cli;

pub(super) async fn mcp(cli: &Cli<'_>, action: McpAction) -> Result<Exit, Failure> {
    match action {
        McpAction::Serve { http } => serve::serve(cli, http).await,
    }
}
