//! The grammar of the global options of the store, and of the command `store`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::chat::time;

/// How the store uses its database. Values that are not set come from the environment and the configuration file.
#[derive(Debug, Default, Args)]
pub(crate) struct StoreOptions {
    /// How many connections to the store are open at most; 16 by default
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) store_connections: Option<u32>,
    /// How long to wait for the store, and for its server to start again, for example 30s; 10s by default
    #[arg(long, global = true, value_name = "TIME", value_parser = time)]
    pub(crate) store_patience: Option<Duration>,
    /// How the names of the store's tables begin; `tool_runtime_` by default
    #[arg(long, global = true, value_name = "PREFIX", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) store_prefix: Option<String>,
    /// Refuse a store that has no tables, or older ones: `store migrate` makes them
    #[arg(long, global = true)]
    pub(crate) no_migrate: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreAction {
    /// Make the tables of the store, or bring older ones to the version of this program
    Migrate,
    /// After a backup was put back: list the runs that are behind anchors that were exported before, and hold them back
    /// from workers; fails if there are any
    Restored {
        /// The anchors, as `audit anchor` and `audit export --anchors` print them
        #[arg(long, value_name = "FILE")]
        anchors: PathBuf,
    },
    /// Let workers continue a run that was held back
    Release {
        /// The run, as `store restored` prints it
        run: String,
    },
}

/// Reads the time of a setting.
pub(crate) fn patience(text: &str) -> Result<Duration, String> {
    time(text)
}
