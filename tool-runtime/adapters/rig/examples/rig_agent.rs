//! An agent of rig with a tool of tool-runtime.

#![allow(clippy::print_stdout, reason = "it prints the answer")]

use rig_agent::AgentBuilder;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};

/// Adds two numbers.
#[tool(name = "math__add", effect = read_only, redact = ["$"])]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::safe("The sum is too large."))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Use a provider's model in place of this script.
    let call = MockTurn::tool_call("c1", "math__add", serde_json::json!({ "a": 2, "b": 3 }));
    let model = MockCompletionModel::from_turns([call, MockTurn::text("It is 5.")]);

    let runner = ToolRunner::builder(ToolCatalog::collect()?, ToolPolicy::allow(["math__add"])).build()?;
    let run = runner.run(RunOptions::new().principal("ada"));
    let agent = AgentBuilder::new(model).dynamic_tools(tool_runtime_rig::tools(&run)).default_max_turns(4).build();

    println!("{}", agent.prompt("What is 2 + 3?").await?.output());
    Ok(())
}
