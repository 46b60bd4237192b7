//! The grammar of `approvals`: the calls that wait, and what is decided on them.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::Endpoint;
use super::chat::time;

/// Who decides, and why. Their roles are those of `--role`.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Who decides, with the roles of --role; the principal by default, if the policy lets it decide its own calls. Has
    /// to be given for a call of that principal in a run of the store
    #[arg(long = "as", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) decider: Option<String>,
    /// Why, for the record; the model does not read it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Who decides, and how long they wait for what becomes of it.
#[derive(Debug, Args)]
pub(crate) struct By {
    #[command(flatten)]
    pub(crate) who: Who,
    /// In a run of the store: how long to wait for its worker, for example 30s; the exit code is then that of the call
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the calls that wait, oldest first: those of the data folder, and with --store those of the tenant
    List,
    /// Show one: what would happen, for whom, why it waits, and its arguments
    Show {
        /// The call, as `approvals list` prints it; RUN/CALL if several have its id
        id: String,
        /// Show the values of sensitive arguments too
        #[arg(long)]
        unmask: bool,
    },
    /// Let the call run as it is
    Approve {
        /// The call
        id: String,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Let the call run with other arguments, which are checked again
    Edit {
        /// The call
        id: String,
        /// All arguments as JSON, `-` for standard input, `@FILE` for a file
        arguments: String,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Refuse the call
    Deny {
        /// The call
        id: String,
        /// What the model reads
        message: Option<String>,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Answer in the place of the tool, or as the client that executed the call
    Answer {
        /// The call
        id: String,
        /// The output as JSON, `-` for standard input, `@FILE` for a file
        output: String,
        #[command(flatten)]
        by: By,
        #[command(flatten)]
        endpoint: Endpoint,
    },
}
