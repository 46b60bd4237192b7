//! `policy explain` and `policy replay`: the decisions of a policy and their reasons. Runs no tool and opens no data.

mod explain;
mod replay;
mod why;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tool_runtime::call::{Caller, Decision};

use crate::exit::{Exit, Failure};
use crate::session::Cli;
use crate::values;

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Show which rule decides on a tool, and why: when tools are listed, when a call arrives, and when its arguments
    /// are final
    Explain(Explain),
    /// Decide recorded calls again under another policy, and print the old and the new decision with their rules; fails
    /// if they differ
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Records as JSON lines, as `audit export`, `call --view audit` and `replay` print them; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(super) records: PathBuf,
    /// The other policy
    #[arg(long, value_name = "POLICY")]
    pub(super) with: PathBuf,
    /// A label that every run has from its start; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    pub(super) labels: Vec<String>,
    /// Print only the calls whose decisions differ, and the counts
    #[arg(long)]
    pub(super) differences: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The name of the tool
    pub(super) name: String,
    /// A label of the run; repeat it for several
    #[arg(long = "label", value_name = "NAME")]
    pub(super) labels: Vec<String>,
    /// The caller: `direct` or `graph:NAME`
    #[arg(long, value_name = "CALLER", default_value = "direct", value_parser = values::caller)]
    pub(super) caller: Caller,
    /// The arguments as JSON, `-` for standard input, `@FILE` for a file
    #[arg(long, value_name = "JSON")]
    pub(super) arguments: Option<String>,
}

pub(crate) fn policy(cli: &Cli<'_>, action: Policy) -> Result<Exit, Failure> {
    match action {
        Policy::Explain(explain) => explain::explain(cli, &explain),
        Policy::Replay(again) => replay::replay(cli, &again),
    }
}

/// A decision as text: the verdict and its rule.
fn describe(decision: &Decision) -> String {
    format!("{} ({})", decision.verdict, decision.rule)
}

fn shared(words: &[String]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(word.as_str())).collect()
}
