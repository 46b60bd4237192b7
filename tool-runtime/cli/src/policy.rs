//! `policy explain` and `policy replay`: print the decisions of a policy with their rules. They run no tool and open no
//! data.

mod explain;
mod replay;
mod why;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::policy::explain::Explain;
use crate::policy::replay::Replay;
use crate::session::Cli;

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Show which rule decides on a tool, and why: when tools are listed, when a call arrives, and when its arguments
    /// are final
    Explain(Explain),
    /// Decide recorded calls again under another policy, and print the old and the new decision with their rules; fails
    /// if they differ
    Replay(Replay),
}

pub(crate) fn policy(cli: &Cli<'_>, action: Policy) -> Result<Exit, Failure> {
    match action {
        Policy::Explain(explain) => explain::explain(cli, &explain),
        Policy::Replay(again) => replay::replay(cli, &again),
    }
}
