//! Arguments as a value in place of text.

use tool_runtime::ToolCall;

fn main() {
    let _ = ToolCall::text("call_1", "stock__count", serde_json::json!({}));
}
