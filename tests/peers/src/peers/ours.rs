//! `tool-runtime`: the whole gate, with a record of each call.

use std::cell::{Cell, RefCell};

use tool_runtime::{
    Capabilities, Outcome, Run, RunOptions, ToolCall, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool,
};

use super::{Peer, ready};
use crate::tools::{self, Place, Row, Shape, Urgency};

/// Adds.
#[tool(name = "peers__tiny", effect = read_only, redact = ["$"])]
fn tiny(
    /// One.
    a: i64,
    /// Another.
    b: i64,
) -> Result<i64, ToolError> {
    Ok(tools::add(tools::Tiny { a, b }))
}

/// Files a ticket.
#[tool(name = "peers__medium", effect = read_only, redact = ["title", "body", "owner", "urgency", "street", "town",
    "floor", "tags", "estimate", "done", "due", "count"])]
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
#[tool(name = "peers__large", effect = read_only, redact = ["id", "name", "email", "score", "tags", "active"])]
fn large(
    /// The rows.
    rows: Vec<Row>,
) -> Result<Vec<Row>, ToolError> {
    Ok(tools::sort(tools::Large { rows }))
}

/// The calls of these tools reach no byte limit.
const POLICY: &str = r#"
    allowed_tools = ["peers__tiny", "peers__medium", "peers__large"]
    [budgets.default]
    max_result_bytes = 1000000
    max_argument_bytes = 1000000
    max_runtime_ms = 1000
"#;

pub fn runner() -> ToolRunner {
    let catalog = ToolCatalog::builder().tool::<tiny>().tool::<medium>().tool::<large>().build();
    let policy = ToolPolicy::from_toml(POLICY).expect("the policy is read");
    let runner = ToolRunner::builder(catalog.expect("the names differ"), policy).capabilities(Capabilities::new());
    runner.build().expect("the tools need nothing")
}

pub const fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::Tiny => "peers__tiny",
        Shape::Medium => "peers__medium",
        Shape::Large => "peers__large",
    }
}

/// The number of calls of a run, which may have 100,000.
const CALLS: u64 = 50_000;

/// A run, and calls with ids as a provider would send them.
pub struct Ours {
    runner: ToolRunner,
    run: RefCell<Run>,
    calls: Cell<u64>,
}

impl Ours {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let _entered = runtime.enter();
        let runner = runner();
        Self { run: RefCell::new(runner.run(RunOptions::new())), runner, calls: Cell::new(0) }
    }
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        "tool-runtime"
    }

    fn call(&self, shape: Shape, arguments: &str) -> String {
        let number = self.calls.replace(self.calls.get() + 1);
        if number % CALLS == CALLS - 1 {
            self.run.replace(self.runner.run(RunOptions::new()));
        }
        let id = format!("call_{number}");
        let result = ready(self.run.borrow().exec(ToolCall::text(id, name(shape), arguments)));
        assert_eq!(result.outcome(), Outcome::Ok, "{result:?}");
        result.to_model().into()
    }
}
