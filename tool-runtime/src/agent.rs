//! The agent loop. The model requests tool calls, and the runner's gate checks each call against the policy and runs
//! it, until the model answers or a call waits for a person or a client.
//!
//! An [`Agent`] holds a model and the settings of the loop. A [`Conversation`] holds a history and the
//! [`Run`](crate::runner::Run) that its calls go through. A [`UiStream`] encodes the events of a request for a chat UI.
//! [`ModelClient`] is the trait that calls a model: `testing::ScriptedModel` implements it for tests, `http::HttpModel`
//! (feature `http`) for models behind HTTP endpoints. [`Conversation::ask`] returns the answer as a Rust type.
//! [`Agent::settings`] sets temperature, reasoning and limits.
//!
//! ```
//! use tool_runtime::agent::{Agent, TurnOutcome};
//! use tool_runtime::testing::{ScriptedModel, ScriptedTurn};
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
//! assert!(matches!(ended, TurnOutcome::Answered { text } if text == "It is 5."));
//! # Ok(()) })
//! # }
//! ```

mod answer_error;
#[cfg(feature = "code-mode")]
mod code;
mod conversation;
mod durable;
mod graph;
mod history;
#[cfg(feature = "http")]
pub mod http;
mod input;
mod meter;
mod model;
mod model_error;
mod outcome;
mod picking;
mod prices;
mod saved;
mod shown;
mod stream;
mod telemetry;
mod turns;
mod typed;
mod worker;

use std::fmt;
use std::sync::Arc;

pub use answer_error::AnswerError;
#[cfg(feature = "code-mode")]
pub use code::CodeMode;
pub use conversation::Conversation;
pub use durable::{Durable, StepError, StepFuture};
pub use graph::Graph;
pub use input::Input;
pub use model::{DisplayFn, ModelClient, ModelRequest, ModelTurn, TurnCall};
pub use model_error::ModelError;
pub(crate) use model_error::ModelErrorKind;
pub use outcome::{StopReason, TurnOutcome, WaitingCall};
pub use prices::Prices;
pub use saved::SavedConversation;
pub use stream::UiStream;
pub use turns::step::Step;
pub use worker::{LeasedRun, RunQueue, Worker};

use crate::agent::picking::Picking;
use crate::tool::{Hash, Hashing};
use crate::wire::RequestSettings;

/// A model plus the settings of the loop that drives it. Cheap to clone.
///
/// ```
/// use tool_runtime::agent::{Agent, Prices};
/// use tool_runtime::testing::ScriptedModel;
///
/// let model = ScriptedModel::new([]);
/// let agent = Agent::new(model).instructions("Be brief.").max_turns(8).prices(Prices::new(3.0, 15.0));
/// # let _ = agent;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Agent {
    model: Arc<dyn ModelClient>,
    instructions: Option<Arc<str>>,
    guidance: bool,
    max_turns: u32,
    parallel: Option<usize>,
    settings: RequestSettings,
    prices: Prices,
    picking: Option<Picking>,
}

impl Agent {
    /// Creates an agent with this model and the defaults: at most 16 turns for one message, as many concurrent calls as
    /// the policy allows, and the catalog's guidance after the instructions.
    pub fn new(model: impl ModelClient + 'static) -> Self {
        Self {
            model: Arc::new(model),
            instructions: None,
            guidance: true,
            max_turns: 16,
            parallel: None,
            settings: RequestSettings::default(),
            prices: Prices::default(),
            picking: None,
        }
    }

    /// Sets the instructions, which come before the history.
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets whether the catalog's rules for the model, such as never to invent ids, follow the instructions; `true` by
    /// default.
    pub const fn guidance(mut self, wanted: bool) -> Self {
        self.guidance = wanted;
        self
    }

    /// Limits the model's turns for one message of the user; 16 by default. A turn counts even if the model gave no
    /// answer in it. If the model needs more turns, the request ends as [`StopReason::TurnLimit`]. With 0 the model is
    /// never asked.
    pub const fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns;
        self
    }

    /// Limits how many adjacent `read_only` calls of a turn run at the same time. The value can only lower the policy's
    /// `parallel`, which is one by default.
    pub const fn parallel(mut self, calls: usize) -> Self {
        self.parallel = Some(calls);
        self
    }

    /// Sets the settings of every request: temperature, limits, reasoning, the choice of tools and so on. Each setting
    /// of a message ([`Input::settings`](crate::agent::Input::settings)) overrides the agent's.
    ///
    /// A tool choice that forces a call applies only until the model's first answer after each message of the user. A
    /// repeated request after an error of the model still has it. Any other choice applies to every turn. If the model
    /// calls a tool outside the choice, [`TurnCall::outside_choice`](crate::agent::TurnCall::outside_choice) and the log
    /// report it, and the gate treats the call like any other. To keep a tool from running, leave it out of
    /// [`RunOptions::tools`](crate::RunOptions::tools).
    ///
    /// ```
    /// use tool_runtime::agent::Agent;
    /// use tool_runtime::testing::ScriptedModel;
    /// use tool_runtime::wire::{ReasoningEffort, RequestSettings, ToolChoice};
    ///
    /// let settings = RequestSettings::new().temperature(0.2).reasoning(ReasoningEffort::Low).tool_choice(ToolChoice::Required);
    /// let agent = Agent::new(ScriptedModel::new([])).settings(settings);
    /// # let _ = agent;
    /// ```
    pub fn settings(mut self, settings: RequestSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Returns the version that a conversation records at its first turn, and by which workers select runs: a hash of
    /// the agent's instructions, of whether the catalog's guidance follows them, and of `runner`. `runner` is the hash
    /// of the policy and the catalog, including the instructions of the catalog's graphs.
    fn version(&self, runner: Hash) -> Hash {
        let mut hashing = Hashing::default();
        hashing.update(&runner.0);
        hashing.update(&[u8::from(self.guidance), u8::from(self.instructions.is_some())]);
        hashing.update(self.instructions.as_deref().unwrap_or_default().as_bytes());
        hashing.finish()
    }

    /// Sets the prices per million tokens, in the unit of the policy's cost budgets; zero by default, so that no turn
    /// uses such a budget.
    pub const fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("model", &self.model.name()).finish_non_exhaustive()
    }
}
