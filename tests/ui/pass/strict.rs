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

use tool_runtime::call::Violation;
use tool_runtime::{Call, Cap, Precondition, ToolComponent, ToolError, capability, definition, tool};

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

/// Multiplies.
#[tool(name = "core__multiply", effect = state_change, redact = ["$"], precondition = times(clock, *left, note))]
fn multiply(
    clock: &dyn Clock,
    /// Left.
    left: i64,
    /// A note.
    note: String,
) -> Result<i64, ToolError> {
    Ok(left * clock.now() * note.len() as i64)
}

async fn times(clock: &dyn Clock, left: i64, note: &str) -> Result<Precondition, ToolError> {
    Ok(Precondition::of("now", clock.now()).and(note, left))
}

/// Pays back. Only the attribute reads the arguments.
#[tool(
    name = "core__refund",
    effect = external_side_effect,
    redact = [],
    once = "refund:{payment_id}",
    summary = "Pays {reason}",
    validate = positive(*cents),
)]
fn refund(
    /// Which payment.
    payment_id: String,
    /// Why.
    reason: String,
    /// How much.
    cents: u32,
) -> Result<(), ToolError> {
    Ok(())
}

fn positive(cents: u32) -> Result<(), Violation> {
    if cents > 0 { Ok(()) } else { Err(Violation::of("cents", "a positive amount")) }
}

/// Cancels. Only the attribute reads the field.
#[tool(name = "core__cancel", effect = external_side_effect, redact = [], once = "cancel:{order}")]
struct Cancel {
    /// Which order.
    order: String,
}

#[tool]
impl Cancel {
    async fn run(self) -> Result<(), ToolError> {
        Ok(())
    }
}

/// Divides.
#[tool(name = "core__divide", effect = state_change, redact = ["$"])]
struct Divide {
    /// By what.
    by: i64,
}

#[tool]
impl Divide {
    async fn run(self, clock: &dyn Clock) -> Result<i64, ToolError> {
        Ok(clock.now() / self.by)
    }

    fn precondition(self, clock: &dyn Clock) -> Result<Precondition, ToolError> {
        Ok(Precondition::of("now", clock.now()).and("by", self.by))
    }
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
