//! A chat over HTTP. For a request of the AI SDK's `useChat`, a conversation answers with a UI message stream. For a
//! request of an AG-UI client, the same conversation answers with the events of a run.
//!
//! Every request is checked before the stream begins: the person, the owner of the chat, and whether the answered calls
//! wait. The service ignores the client's copy of earlier messages and uses its own history.
//!
//! Chats are runs of a store that several processes share. A request holds its chat under a lease. A worker continues
//! chats without a request, for example after a decision in a shell or after a process died.

mod chats;
pub mod demo;
mod page;
pub mod people;
mod refusal;
mod request;
mod routes;
mod state;
pub mod store;
pub mod tools;
pub mod warehouse;

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use tool_runtime::agent::{Agent, ModelClient, RunQueue, Worker};
use tool_runtime::runner::Failure;
use tool_runtime::store::Store;
use tool_runtime::{Capabilities, ToolCatalog, ToolPolicy, ToolRunner};

pub use routes::router;

use crate::people::Person;
use crate::tools::{Orders, Stock};
use crate::warehouse::Warehouse;

pub(crate) type Error = Box<dyn std::error::Error>;

/// The policy of the service, and of its command line.
pub const POLICY: &str = include_str!("../policy.toml");

/// The application: one runner, one agent, and the people. The store has the chats.
pub struct Service {
    runner: ToolRunner,
    agent: Agent,
    queue: RunQueue,
    /// Bearer tokens, each with its person.
    people: HashMap<String, Person>,
}

impl Service {
    /// Creates a service with this model and store. It writes the reasons of failures to stderr.
    ///
    /// # Errors
    /// The policy does not fit the tools.
    pub fn new(
        model: Arc<dyn ModelClient>,
        warehouse: Arc<Warehouse>,
        people: HashMap<String, Person>,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let policy = ToolPolicy::from_toml(POLICY)?;
        let runner = ToolRunner::builder(ToolCatalog::collect()?, policy)
            .capabilities(capabilities(warehouse))
            // A person can decide. Without this line, a policy that requires approvals is refused.
            .approvals(true)
            .store(store)
            .failures(failed)
            .build()?;
        let agent = Agent::new(model).instructions("You help with a warehouse. Answer in one short sentence.");
        let queue = RunQueue::new(&runner);
        Ok(Self { runner, agent, queue, people })
    }

    /// Returns the worker that continues chats between requests: after a posted decision, after the expiry of a
    /// call, and after the crash of a process that was answering.
    pub fn worker(&self) -> Worker {
        Worker::new(self.agent.clone(), self.runner.clone()).name("chat-service")
    }
}

/// Returns the adapters that the tools borrow.
pub fn capabilities(warehouse: Arc<Warehouse>) -> Capabilities {
    Capabilities::new().with::<dyn Stock>(Arc::clone(&warehouse) as _).with::<dyn Orders>(warehouse)
}

// Not derived, because the tokens do not belong in a log.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("runner", &self.runner).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Logs the reason of a failure. The text can contain private data, so it goes to operators only.
fn failed(failure: &Failure<'_>) {
    let (tool, run) = (failure.tool.unwrap_or("-"), failure.run_id.unwrap_or("-"));
    log(format_args!("{} tool={tool} run={run}: {}", failure.code, failure.text));
}

/// Writes a line for operators.
fn log(line: fmt::Arguments<'_>) {
    // A closed stderr leaves no place to report the error.
    let _ = writeln!(std::io::stderr(), "{line}");
}
