//! An adapter whose methods have other lifetimes, because `#[async_trait]` is missing on it.

use async_trait::async_trait;
use tool_runtime::capability;

/// Reads the time.
#[capability(effect = read_only)]
#[async_trait]
trait Clock {
    async fn now(&self) -> i64;
}

struct Noon;

impl Clock for Noon {
    async fn now(&self) -> i64 {
        43_200
    }
}

fn main() {}
