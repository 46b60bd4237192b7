//! A scope and a time without a key.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = external_side_effect, redact = [], once_scope = principal, once_for = "30d")]
fn refund(
    /// Which.
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
