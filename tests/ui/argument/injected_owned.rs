//! What the runtime injects, as an owned parameter: with a doc comment and without.

use std::sync::Arc;

use tool_runtime::{Call, Cap, Connection, ToolContext, ToolError, capability, tool};

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {}

/// Reads a mailbox.
#[capability(effect = read_only, kind = "mail")]
trait Mail {}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = [])]
fn add(
    context: ToolContext,
    /// The time.
    clock: Arc<dyn Clock>,
    other: Cap<dyn Clock>,
    mail: Connection<dyn Mail>,
    call: Call<u32>,
) -> Result<(), ToolError> {
    let _ = (context, clock, other, mail, call);
    Ok(())
}

fn main() {}
