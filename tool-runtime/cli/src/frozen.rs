//! Validates arguments and gives them the form in which the gate would keep them, for commands that run no tool.

use std::sync::Arc;

use tool_runtime::call::Violation;
use tool_runtime::hydrate::HydrationResult;
use tool_runtime::{Outcome, ToolCall, ToolCatalog, ToolPolicy};

use crate::exit::{Exit, Failure};

/// Validated arguments, in the form in which the gate would keep them.
pub(super) struct Frozen {
    /// The arguments as canonical JSON.
    pub(super) text: Arc<str>,
    /// Whether the original text had to be repaired.
    pub(super) repaired: bool,
}

/// Validates arguments of a tool of the catalog. Without a run, it is not checked whether a result has shown the ids in
/// them.
pub(super) fn frozen(catalog: &ToolCatalog, policy: &ToolPolicy, tool: &str, text: &str) -> Result<Frozen, Failure> {
    let result = HydrationResult::preview(catalog, policy, ToolCall::text("explain", tool, text));
    match result.hydrated {
        Ok(hydrated) => {
            let text = result.validated.unwrap_or_else(|| text.into());
            Ok(Frozen { text, repaired: hydrated.repaired() })
        }
        Err(error) => {
            let places: Vec<_> = error.errors.iter().map(Violation::to_string).collect();
            let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) };
            let failure = Failure::usage(format!("the arguments are refused as {}{places}", error.error_code));
            Err(Failure { exit: Exit::of(error.error_code), ..failure }.code(code(error.error_code)))
        }
    }
}

const fn code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::InvalidJson => "invalid_json",
        Outcome::LimitExceeded => "limit_exceeded",
        _ => "validation_error",
    }
}
