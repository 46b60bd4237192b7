//! The grammar of `worker`.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::Who;
use super::chat::{Endpoint, time};
use super::values::at_least_one;

fn lease(text: &str) -> Result<Duration, String> {
    let lease = time(text)?;
    if lease < Duration::from_secs(1) { Err("a lease is at least one second: `1s`".to_owned()) } else { Ok(lease) }
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Worker {
    #[command(subcommand)]
    pub(crate) action: Option<WorkerAction>,
    /// How many conversations to continue at the same time
    #[arg(long, value_name = "N", default_value = "8", value_parser = at_least_one)]
    pub(crate) concurrency: usize,
    /// How long a conversation counts as this worker's without a sign of life, for example 30s; at
    /// least one second
    #[arg(long, value_name = "TIME", value_parser = lease, default_value = "30s")]
    pub(crate) lease: Duration,
    /// How long to wait for a database that is away when the worker starts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s")]
    pub(crate) wait_for_store: Duration,
    #[command(flatten)]
    pub(crate) endpoint: Endpoint,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerAction {
    /// Put a new conversation in the store, for a worker to continue; prints its id
    Put {
        /// What the user writes; `-` is standard input
        prompt: String,
        /// The id of the conversation's run; a fresh one by default
        #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        run: Option<String>,
    },
    /// Post a message, decisions or answers to a conversation
    Post {
        /// The run, as `worker put` printed it
        run: String,
        /// What the user writes; `-` is standard input
        prompt: Option<String>,
        /// Let a call run as it is
        #[arg(long, value_name = "CALL")]
        approve: Vec<String>,
        /// Do not let a call run
        #[arg(long, value_name = "CALL")]
        deny: Vec<String>,
        /// Answer a call of the client: its id and the output as JSON, `-` or `@FILE`
        #[arg(long, num_args = 2, value_names = ["CALL", "JSON"], action = clap::ArgAction::Append)]
        answer: Vec<String>,
        #[command(flatten)]
        who: Who,
    },
    /// Show a conversation: its state, the calls that wait, what the model said last, what it
    /// spent, and what is left to its principal and tenant
    Show {
        /// The run
        run: String,
    },
}
