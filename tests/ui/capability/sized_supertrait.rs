//! Supertraits that no `dyn` trait can have.

use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
trait Clock: Clone + std::fmt::Debug
where
    Self: PartialEq,
{
    fn now(&self) -> i64;
}

fn main() {}
