//! Bindings are made by the runner, and have no public name.

use tool_runtime::capability::Bindings;

fn forge<'a>() -> Bindings<'a> {
    Bindings {}
}

fn main() {}
