//! A future that is bound to its thread.

use tool_runtime::{tool, ToolError};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
async fn add() -> Result<i64, ToolError> {
    let shared = std::rc::Rc::new(0);
    std::future::ready(()).await;
    Ok(*shared)
}

fn main() {}
