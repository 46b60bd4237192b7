//! The grammar of `grants`: what was decided for calls that come later.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Who;
use super::chat::time;

#[derive(Debug, Subcommand)]
pub(crate) enum Grants {
    /// List the grants of the tenant that hold, oldest first
    List,
    /// Decide for calls like one that waits: they run without being asked about. The call itself still waits
    Add(Add),
    /// Take a grant back: later calls are asked about again
    Revoke {
        /// The grant, as `grants list` prints it; records name it as the rule `grant:ID`
        id: String,
    },
}

/// A decision for later calls.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The call, as `approvals list` prints it; RUN/CALL if several have its id. The grant is for its tool
    pub(crate) id: String,
    /// For which runs: its own, those of its conversation, of its principal, or of everybody in its tenant
    #[arg(long = "for", value_enum, value_name = "RUNS")]
    pub(crate) scope: Scope,
    /// For which arguments: a JSON list of conditions such as `[{"pointer": "/to", "one_of": ["a@example.org"]}]`, `-`
    /// for standard input, `@FILE` for a file; those of the call by default
    #[arg(long, value_name = "JSON")]
    pub(crate) matching: Option<String>,
    /// For any arguments
    #[arg(long, conflicts_with = "matching")]
    pub(crate) any_arguments: bool,
    /// How many calls may run; any number by default, which a tool with external effects does not have
    #[arg(long, value_name = "N", conflicts_with = "deny")]
    pub(crate) uses: Option<u32>,
    /// How long it holds, for example 7d; always by default, which a tool with external effects does not have
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) expires_in: Option<Duration>,
    /// Refuse such calls
    #[arg(long)]
    pub(crate) deny: bool,
    #[command(flatten)]
    pub(crate) who: Who,
}

/// The runs that a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    Run,
    Conversation,
    Principal,
    Tenant,
}
