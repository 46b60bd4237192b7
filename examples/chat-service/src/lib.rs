//! A chat over HTTP: the AI SDK's `useChat` posts, and a conversation answers with a UI message stream; a client of
//! AG-UI posts, and the same conversation answers with the events of a run.
//!
//! Everything that a client says is checked before the stream begins: who it is, whose chat it is, whether the calls
//! that it answers wait. What the client says of earlier messages is not read at all: the history is the server's.

mod chats;
pub mod demo;
mod refusal;
mod request;
mod routes;
pub mod tools;
pub mod warehouse;

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use tool_runtime::agent::{Agent, ModelClient};
use tool_runtime::runner::{Failure, ToolRunner};
use tool_runtime::{Capabilities, ToolCatalog, ToolPolicy};

pub use routes::router;

use crate::chats::Chats;
use crate::tools::{Orders, Stock};
use crate::warehouse::Warehouse;

/// The application: one runner, one agent, the chats, and who may come in.
pub struct Service {
    runner: ToolRunner,
    agent: Agent,
    chats: Arc<Chats>,
    /// Bearer tokens, each with its principal.
    tokens: HashMap<String, String>,
}

impl Service {
    /// A service that asks this model. Why tools and models fail is written to stderr.
    ///
    /// # Errors
    /// The policy does not fit the tools.
    pub fn new(
        model: Arc<dyn ModelClient>,
        warehouse: Arc<Warehouse>,
        tokens: HashMap<String, String>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let capabilities =
            Capabilities::new().with::<dyn Stock>(Arc::clone(&warehouse) as _).with::<dyn Orders>(warehouse);
        let policy = ToolPolicy::from_toml(include_str!("../policy.toml"))?;
        let runner = ToolRunner::builder(ToolCatalog::collect()?, policy)
            .capabilities(capabilities)
            // Somebody can answer. Without this line a policy that asks for approvals is refused.
            .approvals(true)
            .failures(failed)
            .build()?;
        let agent = Agent::new(model).instructions("You help with a warehouse. Answer in one short sentence.");
        Ok(Self { runner, agent, chats: Arc::default(), tokens })
    }
}

// Neither tokens nor chats belong in a log.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("runner", &self.runner).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Why something failed. The text can hold anything, so it goes to operators only.
fn failed(failure: &Failure<'_>) {
    let (tool, run) = (failure.tool.unwrap_or("-"), failure.run_id.unwrap_or("-"));
    log(format_args!("{} tool={tool} run={run}: {}", failure.code, failure.text));
}

/// A line for operators.
fn log(line: fmt::Arguments<'_>) {
    // Nobody is left to tell if stderr is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
