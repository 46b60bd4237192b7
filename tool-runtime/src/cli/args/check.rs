//! The grammar of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// Compare the definitions with a lock, and fail if they are not the same
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) lock: Option<PathBuf>,
    /// Write the lock anew; refused for changes that break callers or that a person has to look at
    #[arg(long, requires = "lock")]
    pub(in crate::cli) write: bool,
    /// Write such changes too
    #[arg(long, requires = "write", value_enum, value_delimiter = ',', value_name = "CHANGES")]
    pub(in crate::cli) accept: Vec<Accept>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Accept {
    /// Changes that break callers
    Major,
    /// Changes that are marked for a review
    Review,
}
