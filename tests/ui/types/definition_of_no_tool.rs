//! The definition of something that is no tool.

use tool_runtime::definition;

struct Sum;

fn main() {
    let _ = definition!(Sum);
}
