//! The toolbox: an application that links the office tools, binds their adapters, and has a command line.

mod adapters;
mod composition;
#[cfg(test)]
mod recorded;

use std::process::ExitCode;

// Links the registrations: without this line the catalog is empty.
use office_tools as _;
use tool_runtime::cli::{self, App};

fn main() -> ExitCode {
    let app =
        App::new("toolbox", env!("CARGO_PKG_VERSION"), "Runs office tools for a language model, through one gate")
            .policy(include_str!("../policy.toml"))
            .principal(composition::PRINCIPAL)
            .tenant(composition::TENANT)
            .adapters(composition::open)
            .inspect(composition::inspect)
            .name_of(composition::name_of);
    cli::main(&app)
}
