//! `llm-tool`: its registry, from text.

use llm_tool::{ToolContext, ToolError, ToolOutput, ToolRegistry, llm_tool};

use super::{Peer, ready};
use crate::tools::{self, Place, Row, Shape, Urgency};

/// Adds.
#[llm_tool]
fn tiny(
    /// One.
    a: i64,
    /// Another.
    b: i64,
) -> Result<i64, ToolError> {
    Ok(tools::add(tools::Tiny { a, b }))
}

/// Files a ticket.
#[llm_tool]
#[allow(clippy::too_many_arguments)]
fn medium(
    /// The title.
    title: String,
    /// The text.
    body: String,
    /// Whose it is.
    owner: String,
    /// How urgent.
    urgency: Urgency,
    /// Where.
    place: Place,
    /// Words.
    tags: Vec<String>,
    /// Hours.
    estimate: f64,
    /// When.
    due: Option<String>,
) -> Result<tools::Ticket, ToolError> {
    Ok(tools::file(tools::Medium { title, body, owner, urgency, place, tags, estimate, due }))
}

/// Sorts rows.
#[llm_tool]
fn large(
    /// The rows.
    rows: Vec<Row>,
) -> Result<Vec<Row>, ToolError> {
    Ok(tools::sort(tools::Large { rows }))
}

pub struct LlmTool {
    registry: ToolRegistry,
    context: ToolContext,
}

impl LlmTool {
    pub fn new() -> Self {
        let registry = ToolRegistry::new().with_tool(Tiny).with_tool(Medium).with_tool(Large);
        Self { registry, context: ToolContext::new() }
    }
}

impl Peer for LlmTool {
    fn name(&self) -> &'static str {
        "llm-tool"
    }

    fn call(&self, shape: Shape, arguments: &str) -> String {
        let output: ToolOutput =
            ready(self.registry.dispatch_str(shape.name(), arguments, &self.context)).expect("the tool runs");
        output.content().to_owned()
    }
}
