//! A method that borrows a capability beyond the effect of its struct.

use tool_runtime::{ToolError, capability, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

/// Sends mail.
#[capability(effect = external_side_effect)]
trait Mailer {
    fn send(&self) -> i64;
}

#[tool]
impl Add {
    async fn run(self, mailer: &dyn Mailer) -> Result<i64, ToolError> {
        Ok(self.left + mailer.send())
    }
}

fn main() {}
