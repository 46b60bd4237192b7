//! A context is the runner's to make.

use tool_runtime::ToolContext;

fn forge() -> ToolContext {
    ToolContext(())
}

fn main() {}
