//! A time and a scope that do not exist.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = external_side_effect, redact = [], once = "refund:{payment_id}", once_scope = world, once_for = "30s")]
fn refund(
    /// Which.
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
