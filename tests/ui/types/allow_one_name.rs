//! A name in place of a list.

use tool_runtime::{RunOptions, ToolPolicy};

fn main() {
    let _ = ToolPolicy::allow("stock__count");
    let _ = RunOptions::new().tools("stock__count");
}
