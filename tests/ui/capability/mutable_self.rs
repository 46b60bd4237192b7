use tool_runtime::{ToolError, capability, tool};

/// Counts.
#[capability(effect = state_change)]
trait Counter {
    fn add(&mut self);
    fn count(&self) -> u32;
}

/// Reads the counter. The capability is the only mistake.
#[tool(name = "core__count", effect = state_change, redact = ["$"])]
fn count(counter: &dyn Counter) -> Result<u32, ToolError> {
    Ok(counter.count())
}

fn main() {}
