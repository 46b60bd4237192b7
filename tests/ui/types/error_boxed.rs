use std::error::Error;

use tool_runtime::{ToolError, tool};

fn load() -> Result<u8, Box<dyn Error + Send + Sync>> {
    Ok(1)
}

/// The error of the function.
#[tool(name = "core__load", effect = read_only, redact = ["$"])]
fn returned() -> Result<u8, Box<dyn Error + Send + Sync>> {
    load()
}

/// An error inside of the function.
#[tool(name = "core__load_more", effect = read_only, redact = ["$"])]
fn converted() -> Result<u8, ToolError> {
    Ok(load()?)
}

fn main() {}
