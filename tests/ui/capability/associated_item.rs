//! A type and a constant that `dyn Clock` would have to state.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    type Zone;
    const STEP: u64;

    fn now(&self, zone: Self::Zone) -> u64;
}

fn main() {}
