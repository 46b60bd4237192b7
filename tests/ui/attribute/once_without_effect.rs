//! A key on a tool that only reads.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = read_only, redact = [], once = "refund:{payment_id}")]
fn refund(
    /// Which.
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
