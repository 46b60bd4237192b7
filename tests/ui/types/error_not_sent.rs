use std::error::Error;

use tool_runtime::{ToolError, tool};

fn load() -> Result<u32, Box<dyn Error>> {
    Ok(1)
}

/// Adds. The error of `load` cannot go to another thread.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<u32, ToolError> {
    Ok(load()?)
}

fn main() {}
