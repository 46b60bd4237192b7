//! The grammar of `grants`: what was decided for calls that come later.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Grants {
    /// List the grants of the tenant that hold, oldest first
    List,
    /// Take a grant back: later calls are asked about again
    Revoke {
        /// The grant, as `grants list` prints it; records name it as the rule `grant:ID`
        id: String,
    },
}
