//! Required keys with a typo are not missing too; keys that other libraries have; other separators.

use tool_runtime::{ToolError, capability, tool};

/// Adds.
#[tool(nmae = "core__add", efect = read_only, redakt = ["$"])]
fn add() -> Result<u32, ToolError> {
    Ok(1)
}

/// Reads.
#[capability(efect = read_only)]
trait Clock {}

/// Takes away.
#[tool(name = "core__sub", effect = read_only, redact = ["a" "b"], tags = ["c" "d", e], description = "Sub", readonly)]
fn sub() -> Result<u32, ToolError> {
    Ok(1)
}

/// Divides.
#[tool(name = "core__div"; effect = read_only; redact = ["$"])]
fn div() -> Result<u32, ToolError> {
    Ok(1)
}

/// Multiplies.
#[tool(name: "core__mul", effect: read_only, redact: ["$"], require_any = ["a"])]
fn mul() -> Result<u32, ToolError> {
    Ok(1)
}

fn main() {}
