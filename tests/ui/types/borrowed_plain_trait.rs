use tool_runtime::{ToolError, tool};

trait Plain {
    fn count(&self) -> u32;
}

/// Counts.
#[tool(name = "core__count", effect = read_only, redact = ["$"])]
fn count(plain: &dyn Plain) -> Result<u32, ToolError> {
    Ok(plain.count())
}

/// Counts, and waits.
#[tool(name = "core__count_slowly", effect = read_only, redact = ["$"])]
async fn count_slowly(plain: &dyn Plain) -> Result<u32, ToolError> {
    std::future::ready(()).await;
    Ok(plain.count())
}

fn main() {}
