//! The agent loop: a model and the gate take turns until there is an answer or somebody else has to act.
//!
//! [`Agent`] is a model and the settings of the loop, [`Conversation`] one history with one
//! [`Run`](crate::runner::Run), [`UiStream`] its events as the bytes of a chat UI. [`ModelClient`] is the one function
//! that calls a model: [`ScriptedModel`] for tests, `http::HttpModel` (feature `http`) for endpoints.
//! [`Conversation::ask`] returns an answer of a type, [`Agent::settings`] sets temperature, reasoning and limits.
//!
//! ```
//! use tool_runtime::agent::{Agent, Ended, ScriptedModel, ScriptedTurn};
//! use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
//!
//! /// Adds two numbers.
//! #[tool(name = "math__add", effect = read_only, redact = ["$"])]
//! fn add(
//!     /// The first.
//!     a: i64,
//!     /// The second.
//!     b: i64,
//! ) -> Result<i64, ToolError> {
//!     Ok(a + b)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let catalog = ToolCatalog::builder().tool::<add>().build()?;
//! let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["math__add"])).build()?;
//! let model = ScriptedModel::new([ScriptedTurn::call("c1", "math__add", r#"{"a":2,"b":3}"#), ScriptedTurn::text("It is 5.")]);
//!
//! let mut conversation = Agent::new(model).converse(runner.run(RunOptions::new()));
//! let ended = conversation.send("What is 2 + 3?").await;
//! assert!(matches!(ended, Ended::Answered { text } if text == "It is 5."));
//! # Ok(()) })
//! # }
//! ```

#[allow(clippy::module_inception, reason = "the file is found by the name of its type")]
mod agent;
mod answer;
mod answer_error;
#[cfg(feature = "code-mode")]
mod code;
mod conversation;
mod display;
mod drive;
mod durable;
mod ended;
mod graph;
mod history;
#[cfg(feature = "http")]
pub mod http;
mod incoming;
mod meter;
mod model;
mod model_error;
mod picking;
mod prices;
mod saved;
mod scripted;
mod settle;
mod shown;
mod state;
mod step;
mod stream;
mod telemetry;
mod turn;
mod typed;
mod worker;

pub use agent::Agent;
pub use answer::ClientAnswer;
pub use answer_error::AnswerError;
#[cfg(feature = "code-mode")]
pub use code::CodeMode;
pub use conversation::Conversation;
pub use durable::{Durable, Unfinished, Work};
pub use ended::{Ended, StopReason, WaitingCall};
pub use graph::Graph;
pub use incoming::Incoming;
pub use model::{ModelClient, ModelRequest, ModelTurn, Show, TurnCall};
pub use model_error::{ModelError, ModelErrorKind};
pub use prices::Prices;
pub use saved::SavedConversation;
pub use scripted::{ScriptedModel, ScriptedTurn};
pub use step::Step;
pub use stream::UiStream;
pub use worker::{Delivery, LeasedRun, QueueError, RunQueue, Worker};
