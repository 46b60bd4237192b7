//! A secret inside an output.

use tool_runtime::{Secret, ToolError, tool};

#[derive(serde::Serialize)]
struct Login {
    token: Secret<String>,
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add() -> Result<Login, ToolError> {
    Ok(Login { token: Secret::new(String::new()) })
}

fn main() {}
