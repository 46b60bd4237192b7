//! A struct as capability.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
struct Clock;

fn main() {}
