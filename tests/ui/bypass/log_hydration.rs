//! Raw arguments do not serialise.

use tool_runtime::hydrate::HydrationResult;

fn log(result: &HydrationResult) -> serde_json::Result<String> {
    serde_json::to_string(result)
}

fn main() {}
