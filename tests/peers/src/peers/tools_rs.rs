//! `tools-rs`: its collection.

use tools_rs::{FunctionCall, ToolCollection, collect_tools, tool};

use super::{Peer, ready};
use crate::tools::{self, Place, Row, Shape, Urgency};

#[tool]
/// Adds.
async fn tiny(a: i64, b: i64) -> i64 {
    tools::add(tools::Tiny { a, b })
}

#[tool]
/// Files a ticket.
#[allow(clippy::too_many_arguments)]
async fn medium(
    title: String,
    body: String,
    owner: String,
    urgency: Urgency,
    place: Place,
    tags: Vec<String>,
    estimate: f64,
    due: Option<String>,
) -> tools::Ticket {
    tools::file(tools::Medium { title, body, owner, urgency, place, tags, estimate, due })
}

#[tool]
/// Sorts rows.
async fn large(rows: Vec<Row>) -> Vec<Row> {
    tools::sort(tools::Large { rows })
}

pub struct ToolsRs(ToolCollection);

impl ToolsRs {
    pub fn new() -> Self {
        Self(collect_tools())
    }
}

impl Peer for ToolsRs {
    fn name(&self) -> &'static str {
        "tools-rs"
    }

    fn call(&self, shape: Shape, arguments: &str) -> String {
        let arguments = serde_json::from_str(arguments).expect("the arguments are JSON");
        let call = FunctionCall::new(shape.name().to_owned(), arguments);
        ready(self.0.call(call)).expect("the tool runs").result.to_string()
    }
}
