//! A family of capabilities.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock<Zone> {
    fn now(&self) -> i64;
}

fn main() {}
