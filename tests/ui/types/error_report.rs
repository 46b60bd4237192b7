use std::fmt;

use tool_runtime::{ToolError, tool};

/// Made like `anyhow::Error`: it holds an error and is none.
struct Report;

impl From<fmt::Error> for Report {
    fn from(_: fmt::Error) -> Self {
        Self
    }
}

fn load() -> Result<u8, Report> {
    Ok(1)
}

/// The error of the function.
#[tool(name = "core__load", effect = read_only, redact = ["$"])]
fn returned() -> Result<u8, Report> {
    load()
}

/// An error inside of the function.
#[tool(name = "core__load_more", effect = read_only, redact = ["$"])]
fn converted() -> Result<u8, ToolError> {
    Ok(load()?)
}

fn main() {}
