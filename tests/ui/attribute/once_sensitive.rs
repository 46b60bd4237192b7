//! A sensitive argument in a key.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = external_side_effect, redact = [], once = "refund:{payment_id}")]
fn refund(
    /// Which.
    #[arg(sensitive)]
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
