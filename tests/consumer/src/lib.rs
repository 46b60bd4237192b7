//! Tools of a crate that renamed its dependency and denies every lint that it can: the code of the macros triggers
//! none.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic, clippy::nursery)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::absolute_paths, clippy::allow_attributes)]
#![deny(clippy::std_instead_of_core, clippy::shadow_unrelated, clippy::str_to_string)]

use core::future::ready;

use renamed::call::Violation;
use renamed::{Call, Cap, Connection, ToolComponent, ToolContext, ToolError, capability, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reads the time.
#[capability(effect = read_only, crate = renamed)]
pub trait Clock {
    /// Seconds since 1970.
    fn now(&self) -> i64;
}

/// Someone's calendar.
#[capability(effect = read_only, kind = "calendar", crate = renamed)]
pub trait Calendar {
    /// When the next entry begins.
    fn next(&self) -> i64;
}

/// How precise an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// To the second.
    Second,
    /// To the day.
    Day,
}

/// An answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Left {
    /// What is left.
    pub left: i64,
}

/// Time until the next entry.
#[tool(
    name = "calendar__until_next",
    effect = read_only,
    redact = ["left"],
    require_any = [precision, after],
    crate = renamed
)]
pub async fn until_next(
    clock: &dyn Clock,
    calendar: &Connection<dyn Calendar>,
    context: &ToolContext,
    /// How precise.
    #[arg(default = Precision::Second)]
    precision: Precision,
    /// Skip what is before this.
    #[serde(rename = "after_time")]
    after: Option<i64>,
) -> Result<Left, ToolError> {
    ready(()).await;
    let left = calendar.next().max(after.unwrap_or(0)) - clock.now();
    if context.cancellation().is_cancelled() {
        return Err(ToolError::code("cancelled"));
    }
    Ok(Left { left: if precision == Precision::Day { left / 86_400 } else { left } })
}

/// Counts letters.
#[tool(name = "core__letters", effect = read_only, redact = ["$"], crate = renamed)]
pub fn letters(
    /// The text.
    text: String,
) -> Result<usize, ToolError> {
    Ok(text.chars().count())
}

/// Waits.
#[tool(name = "core__wait", effect = read_only, redact = ["$"], blocking, timeout = "1s", crate = renamed)]
fn wait(clock: &dyn Clock) -> Result<i64, ToolError> {
    clock.now().checked_abs().ok_or_else(|| ToolError::code("too_early"))
}

/// Rounds a time.
#[tool(name = "core__round", effect = read_only, redact = ["$"], validate = Round::is_sane, crate = renamed)]
#[derive(Debug)]
pub struct Round {
    /// The time.
    time: i64,
    /// To what.
    #[arg(default = Precision::Day)]
    to: Precision,
    /// An offset.
    offset: Option<i64>,
}

impl Round {
    fn is_sane(&self) -> Result<(), Violation> {
        if self.time < 0 { Err(Violation::new("/time", "semantic", "a time after 1970")) } else { Ok(()) }
    }
}

impl ToolComponent for Round {
    type Capabilities = (Cap<dyn Clock>,);
    type Output = i64;

    async fn run(self, (clock,): Self::Capabilities, _: &Call<Self>) -> Result<i64, ToolError> {
        let offset = self.offset.unwrap_or_else(|| clock.now());
        Ok(if self.to == Precision::Day { (self.time - offset) / 86_400 } else { self.time })
    }
}

#[cfg(test)]
mod tests {
    use renamed::definition;

    #[test]
    fn a_renamed_runtime_reads_the_definitions() {
        let names = [definition!(super::until_next), definition!(super::wait), super::Round::definition()];
        let names = names.map(|definition| definition.unwrap().name.to_string());
        assert_eq!(names, ["calendar__until_next", "core__wait", "core__round"]);
    }
}
