//! A function tool with a capability beyond its effect.

use tool_runtime::{ToolError, capability, tool};

/// Sends mail.
#[capability(effect = external_side_effect)]
trait Mailer {
    fn send(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    mailer: &dyn Mailer,
) -> Result<i64, ToolError> {
    Ok(mailer.send())
}

fn main() {}
