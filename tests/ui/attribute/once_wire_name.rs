//! An argument in a key whose name on the wire has a dot.

use tool_runtime::{ToolError, tool};

/// Pays a payment back.
#[tool(name = "pay__refund", effect = external_side_effect, redact = [], once = "refund:{payment_id}")]
fn refund(
    /// Which.
    #[serde(rename = "payment.id")]
    payment_id: String,
) -> Result<(), ToolError> {
    drop(payment_id);
    Ok(())
}

fn main() {}
