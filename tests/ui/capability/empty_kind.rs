//! A kind of nothing.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only, kind = "")]
trait Clock {
    fn now(&self) -> i64;
}

fn main() {}
