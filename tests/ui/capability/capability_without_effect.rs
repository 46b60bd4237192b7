//! A capability that says not how far it reaches.

use tool_runtime::capability;

/// Reads the time.
#[capability]
trait Clock {
    fn now(&self) -> i64;
}

fn main() {}
