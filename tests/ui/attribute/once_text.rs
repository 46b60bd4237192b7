//! A key without text.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = external_side_effect, redact = [], once = " ")]
fn refund(
    /// Which.
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
