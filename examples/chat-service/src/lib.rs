//! A chat over HTTP: the AI SDK's `useChat` posts, and a conversation answers with a UI message stream; a client of
//! AG-UI posts, and the same conversation answers with the events of a run.
//!
//! Every claim of a client is checked before the stream begins: its identity, the owner of the chat, and whether the
//! answered calls wait. The client's copy of earlier messages is not read: the history is the server's.

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

/// The application: one runner, one agent, the chats and the tokens.
pub struct Service {
    runner: ToolRunner,
    agent: Agent,
    chats: Arc<Chats>,
    /// Bearer tokens, each with its principal.
    tokens: HashMap<String, String>,
}

impl Service {
    /// Creates a service with this model. It writes the reasons of failures to stderr.
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
            // A person can decide. Without this line, a policy that requires approvals is refused.
            .approvals(true)
            .failures(failed)
            .build()?;
        let agent = Agent::new(model).instructions("You help with a warehouse. Answer in one short sentence.");
        Ok(Self { runner, agent, chats: Arc::default(), tokens })
    }
}

// Written by hand, because neither tokens nor chats belong in a log.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("runner", &self.runner).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Logs the reason of a failure. The text can hold anything, so it goes to operators only.
fn failed(failure: &Failure<'_>) {
    let (tool, run) = (failure.tool.unwrap_or("-"), failure.run_id.unwrap_or("-"));
    log(format_args!("{} tool={tool} run={run}: {}", failure.code, failure.text));
}

/// Writes a line for operators.
fn log(line: fmt::Arguments<'_>) {
    // A closed stderr leaves no place to report the error.
    let _ = writeln!(std::io::stderr(), "{line}");
}
