use tool_runtime::{ToolError, capability, tool};

/// Somebody's mail.
#[capability(effect = read_only, kind = "mail")]
trait Mail {
    fn unread(&self) -> u32;
}

/// Counts unread mail.
#[tool(name = "mail__unread", effect = read_only, redact = ["$"])]
fn unread(mail: &dyn Mail) -> Result<u32, ToolError> {
    Ok(mail.unread())
}

fn main() {}
