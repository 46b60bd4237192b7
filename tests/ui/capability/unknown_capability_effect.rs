//! An effect that does not exist.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = none)]
trait Clock {
    fn now(&self) -> i64;
}

fn main() {}
