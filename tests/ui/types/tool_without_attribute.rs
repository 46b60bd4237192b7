//! A function without `#[tool]`. The compiler looks for a type before it asks any trait.

use tool_runtime::ToolCatalog;

fn plain() {}

fn main() {
    let _ = ToolCatalog::builder().tool::<plain>();
}
