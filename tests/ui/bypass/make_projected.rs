//! What is shown comes out of a projection.

use tool_runtime::redact::Projected;

fn forge(shown: std::sync::Arc<serde_json::value::RawValue>) -> Projected {
    Projected { shown, model: None, truncated: false }
}

fn main() {}
