//! A call that no run makes.

use tool_runtime::{ToolCall, ToolRunner};

async fn count(runner: &ToolRunner) {
    runner.exec(ToolCall::text("call_1", "stock__count", "{}")).await;
}

fn main() {}
