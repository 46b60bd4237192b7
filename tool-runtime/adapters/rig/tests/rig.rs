//! Tests an agent of rig with tools of tool-runtime. Definitions are offered unchanged, and every call goes through the
//! gate.

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

use adapter_world::{PAGE_AS_TEXT, outcomes, pages, run};
use rig_agent::AgentBuilder;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::json;

#[tokio::test]
async fn an_agent_of_rig_calls_through_the_gate() {
    let (run, store) = run();
    let call = |id: &str, name: &str, arguments| MockTurn::tool_call(id, name, arguments);
    let model = MockCompletionModel::from_turns([
        call("c1", "math__add", json!({ "a": 2, "b": 3 })),
        call("c2", "math__add", json!({ "a": "two", "b": 3 })),
        call("c3", "math__add", json!({ "a": i64::MAX, "b": 1 })),
        call("c4", "notes__delete", json!({ "note": 7 })),
        MockTurn::text("Done."),
    ]);
    let tools = tool_runtime_rig::tools(&run);
    let agent = AgentBuilder::new(model.clone()).dynamic_tools(tools).default_max_turns(8).build();
    let answer = agent.prompt("Try.").await.unwrap();
    assert_eq!(answer.output(), "Done.");

    let requests = model.requests();
    let offered: Vec<_> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["math__add", "notes__delete"]);
    assert_eq!(requests[0].tools[0].parameters["required"], json!(["a", "b"]));
    let told = format!("{:?}", requests.last().unwrap());
    for words in ["validation_error", "The sum is too large.", "approval_required"] {
        assert!(told.contains(words), "{words}");
    }
    // The call that waits has no closed record yet.
    assert_eq!(outcomes(&store).await, ["ok", "validation_error", "execution_error"]);
}

#[tokio::test]
async fn files_are_text() {
    let tool = tool_runtime_rig::tools(&pages()).remove(0);
    let output = tool.run(json!({})).await.unwrap();
    assert_eq!(output.as_text(), Some(PAGE_AS_TEXT));
}
