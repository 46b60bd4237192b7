//! A key that does not exist.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only, name = "clock", effect = read_only)]
trait Clock {
    fn now(&self) -> i64;
}

fn main() {}
