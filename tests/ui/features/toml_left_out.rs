//! A policy in TOML without the feature `toml`.

use tool_runtime::ToolPolicy;

fn main() {
    let _ = ToolPolicy::from_toml("allowed_tools = []");
}
