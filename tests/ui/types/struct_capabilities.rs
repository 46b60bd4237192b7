//! Capabilities that are no tuple of `Cap`.

use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, tool};

/// Reads a calendar.
#[capability(effect = read_only)]
trait Calendar {
    fn next(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
struct Add {}

impl ToolComponent for Add {
    type Capabilities = Cap<dyn Calendar>;
    type Output = i64;

    async fn run(self, calendar: Cap<dyn Calendar>, _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(calendar.next())
    }
}

fn main() {}
