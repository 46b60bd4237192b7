//! An adapter that is bound to its thread.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    fn now(&self) -> i64;
}

struct Fixed(std::rc::Rc<i64>);

impl Clock for Fixed {
    fn now(&self) -> i64 {
        *self.0
    }
}

fn main() {}
