use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, tool};

/// Somebody's mail.
#[capability(effect = read_only, kind = "mail")]
trait Mail {
    fn unread(&self) -> u32;
}

/// Counts unread mail.
#[tool(name = "mail__unread", effect = read_only, redact = ["$"])]
struct Unread {}

impl ToolComponent for Unread {
    type Capabilities = (Cap<dyn Mail>,);
    type Output = u32;

    async fn run(self, (mail,): Self::Capabilities, _: &Call<Self>) -> Result<u32, ToolError> {
        Ok(mail.unread())
    }
}

fn main() {}
