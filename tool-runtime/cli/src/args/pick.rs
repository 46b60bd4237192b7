//! The grammar of `pick`: what is asked for, and what is picked from.

use std::path::PathBuf;

use clap::Args;
use tool_runtime::catalog::PickOptions;

#[derive(Debug, Args)]
pub(crate) struct Pick {
    /// What a user asks for
    #[arg(required_unless_present = "queries", conflicts_with = "queries")]
    pub(crate) query: Option<String>,
    /// How many tools to pick at most
    #[arg(short, value_name = "TOOLS", default_value_t = 3, value_parser = most)]
    pub(crate) k: usize,
    /// Pick from these tool definitions, one JSON object per line; what is broken is left out and noted
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Requests, one JSON object with `id` and `query` per line; prints `{"id","ranked","ms"}` for each; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) queries: Option<PathBuf>,
}

/// How many tools may be picked.
pub(super) fn most(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(most @ 1..=PickOptions::MOST) => Ok(most),
        _ => Err(format!("write a whole number, at least 1 and at most {}", PickOptions::MOST)),
    }
}
