//! An async trait that has no `dyn`.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    async fn now(&self) -> i64;
}

fn main() {}
