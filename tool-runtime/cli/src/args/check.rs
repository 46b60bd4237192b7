//! The grammar of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Compare the definitions with a lock, and fail if they are not the same
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
    /// Write the lock anew; refused for changes that break callers or that a person has to look at
    #[arg(long, requires = "lock")]
    pub(crate) write: bool,
    /// Write such changes too
    #[arg(long, requires = "write", value_enum, value_delimiter = ',', value_name = "CHANGES")]
    pub(crate) accept: Vec<Accept>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Accept {
    /// Changes that break callers
    Major,
    /// Changes that are marked for a review
    Review,
}
