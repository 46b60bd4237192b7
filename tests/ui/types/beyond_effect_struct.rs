//! A struct tool with a capability beyond its effect.

use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, tool};

/// Sends mail.
#[capability(effect = external_side_effect)]
trait Mailer {
    fn send(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = state_change, redact = ["$"])]
struct Add {}

impl ToolComponent for Add {
    type Capabilities = (Cap<dyn Mailer>,);
    type Output = i64;

    async fn run(self, (mailer,): (Cap<dyn Mailer>,), _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(mailer.send())
    }
}

fn main() {}
