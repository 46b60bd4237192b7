//! Parameters that are no borrowed capabilities.

use tool_runtime::{ToolContext, ToolError, capability, tool};

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {
    /// Left.
    left: i64,
}

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    fn now(&self) -> i64;
}

#[tool]
impl Add {
    async fn run(
        self,
        /// Right.
        #[arg(default = 1)]
        right: i64,
        call: ToolContext,
        clock: &mut dyn Clock,
        other: &impl Clock,
    ) -> Result<i64, ToolError> {
        Ok(self.left + right + clock.now() + other.now())
    }
}

fn main() {}
