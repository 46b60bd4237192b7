//! What is hydrated comes out of hydration.

use tool_runtime::{ToolCall, hydrate::Hydrated};

fn forge(call: ToolCall) -> Hydrated {
    Hydrated { call }
}

fn main() {}
