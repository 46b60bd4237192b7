//! An agent that searches the documents, as a tool of another agent. Run it with
//! `cargo run -p office-tools --example researcher`.

#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::sync::Arc;

use async_trait::async_trait;
use office_tools::Failure;
use office_tools::docs::{DocumentIndex, Hit, search};
use tool_runtime::agent::{Agent, Graph, TurnOutcome};
use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
use tool_runtime::{Capabilities, RunOptions, ToolCatalog, ToolPolicy, ToolRunner};

struct Library;

#[async_trait]
impl DocumentIndex for Library {
    async fn search(&self, _: &str, _: u32) -> Result<Vec<Hit>, Failure> {
        let (document_id, title) = ("d-7".to_owned(), "Travel expenses".to_owned());
        Ok(vec![Hit { document_id, title, snippet: "A train is booked in second class.".to_owned() }])
    }
}

const POLICY: &str = r#"
allowed_tools = ["docs__search"]
allowed_graphs = ["researcher"]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Scripts replace two models: that of the graph, and that of the agent which calls the graph.
    let inner = ScriptedModel::new([
        ScriptedTurn::call("c1", "docs__search", r#"{"query":"train class"}"#),
        ScriptedTurn::text(r#"{"summary":"Second class.","findings":["d-7: Travel expenses"]}"#),
    ]);
    let outer = ScriptedModel::new([
        ScriptedTurn::call("c1", "graph__researcher", r#"{"task":"Which class may a train be booked in?"}"#),
        ScriptedTurn::text("Second class, says the document on travel expenses."),
    ]);

    let researcher = Graph::new("researcher", "1", Agent::new(inner).max_turns(6))
        .description("Searches the documents. Give it a whole question.")
        .tools(["docs__search"]);
    let catalog = ToolCatalog::builder().tool::<search>().dynamic(researcher).build()?;
    let runner = ToolRunner::builder(catalog, ToolPolicy::from_toml(POLICY)?)
        .capabilities(Capabilities::new().with(Arc::new(Library) as Arc<dyn DocumentIndex>))
        .build()?;

    let mut conversation = Agent::new(outer).converse(runner.run(RunOptions::new().principal("ada")));
    if let TurnOutcome::Answered { text } = conversation.send("May I book first class?").await {
        println!("{text}");
    }
    Ok(())
}
