//! A context is the runner's to make.

use tool_runtime::ToolContext;



fn main() {
    let _ = ToolContext(loop {});
}
