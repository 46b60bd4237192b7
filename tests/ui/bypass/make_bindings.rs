//! Bindings are the runner's to make.

use tool_runtime::capability::Bindings;



fn main() {
    let _ = Bindings { capabilities: loop {}, connections: &[], context: loop {} };
}
