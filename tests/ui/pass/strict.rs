//! A crate that forbids and denies what it can.

#![forbid(unsafe_code)]
#![deny(
    unused,
    nonstandard_style,
    future_incompatible,
    rust_2018_idioms,
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    single_use_lifetimes,
    trivial_casts,
    unused_results,
    unnameable_types,
    let_underscore_drop
)]

use tool_runtime::{Call, Cap, ToolComponent, ToolError, capability, definition, tool};

/// Reads the time.
#[capability(effect = read_only)]
trait Clock {
    fn now(&self) -> i64;
}

/// Adds.
#[tool(name = "core__add", effect = read_only, redact = ["$"])]
fn add(
    clock: &dyn Clock,
    /// Left.
    #[arg(default = 1)]
    left: i64,
) -> Result<i64, ToolError> {
    Ok(left + clock.now())
}

/// Subtracts.
#[tool(name = "core__subtract", effect = state_change, redact = ["$"], require_any = [right])]
#[derive(Debug)]
struct Subtract {
    /// Left.
    #[arg(default = 1)]
    left: i64,
    /// Right.
    right: Option<i64>,
}

impl ToolComponent for Subtract {
    type Capabilities = (Cap<dyn Clock>,);
    type Output = i64;

    async fn run(self, (clock,): Self::Capabilities, _: &Call<Self>) -> Result<i64, ToolError> {
        Ok(self.left - self.right.unwrap_or_else(|| clock.now()))
    }
}

fn main() {
    assert!(definition!(add).is_ok());
}
