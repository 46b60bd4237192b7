//! A `Cap` is the runner's to make.

use tool_runtime::{Cap, capability};

/// Reads a calendar.
#[capability(effect = read_only)]
trait Calendar {
    fn next(&self) -> i64;
}

fn steal(calendar: std::sync::Arc<dyn Calendar>) -> Cap<dyn Calendar> {
    Cap(calendar)
}

fn main() {}
