//! A trait without a `dyn`.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    fn now<T>(&self, zone: T) -> i64;
}

fn main() {}
