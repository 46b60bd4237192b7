//! Bindings are the runner's to make.

use tool_runtime::{Capabilities, ToolContext, capability::Bindings};

fn forge<'a>(capabilities: &'a Capabilities, context: &'a std::sync::Arc<ToolContext>) -> Bindings<'a> {
    Bindings { capabilities, connections: &[], context }
}

fn main() {}
