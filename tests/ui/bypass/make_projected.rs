//! What is shown comes out of a projection.

use tool_runtime::redact::Projected;

fn forge(shown: tool_runtime::call::JsonText) -> Projected {
    Projected { shown, model: None, truncated: false }
}

fn main() {}
