//! [`Agent`]: a model plus the settings of the loop that drives it.

use std::fmt;
use std::sync::Arc;

use crate::agent::picking::Picking;
use crate::agent::state::State;
use crate::agent::{Conversation, ModelClient, Prices};
use crate::runner::Run;
use crate::wire::RequestSettings;

/// A model plus the settings of the loop that drives it. Cheap to clone.
///
/// ```
/// use tool_runtime::agent::{Agent, Prices, ScriptedModel};
///
/// let model = ScriptedModel::new([]);
/// let agent = Agent::new(model).instructions("Be brief.").max_turns(8).prices(Prices::new(3.0, 15.0));
/// # let _ = agent;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Agent {
    pub(super) model: Arc<dyn ModelClient>,
    pub(super) instructions: Option<Arc<str>>,
    pub(super) guidance: bool,
    pub(super) max_turns: u32,
    pub(super) parallel: Option<usize>,
    pub(super) settings: RequestSettings,
    pub(super) prices: Prices,
    pub(super) picking: Option<Picking>,
}

impl Agent {
    /// Creates an agent with this model: 16 turns for one answer, as many calls at the same time as the policy allows,
    /// guidance from the catalog.
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

    /// Sets whether the catalog's guidance (never invent ids, list first, ..) follows the instructions; `true` by
    /// default.
    pub const fn guidance(mut self, wanted: bool) -> Self {
        self.guidance = wanted;
        self
    }

    /// Limits the model's turns for one message of the user; 16 by default. The turn that would be one too many ends as
    /// [`StopReason::TurnLimit`](crate::agent::StopReason::TurnLimit).
    pub const fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns;
        self
    }

    /// Limits how many neighbouring `read_only` calls of a turn run at the same time. The policy's `parallel`, one by
    /// default, is the limit that this can only lower.
    pub const fn parallel(mut self, calls: usize) -> Self {
        self.parallel = Some(calls);
        self
    }

    /// Sets what every request asks for: temperature, limits, reasoning, the choice of tools and so on. Each setting of
    /// a message ([`Incoming::settings`](crate::agent::Incoming::settings)) wins over the one given here.
    ///
    /// A choice that forces a call holds for the first turn after each message of the user, any other choice for every
    /// turn. A call outside the choice is flagged in
    /// [`TurnCall::outside_choice`](crate::agent::TurnCall::outside_choice) and in the log, and goes through the gate
    /// like any other: to refuse tools, leave them out of [`RunOptions::tools`](crate::RunOptions::tools).
    ///
    /// ```
    /// use tool_runtime::agent::{Agent, ScriptedModel};
    /// use tool_runtime::wire::{Effort, RequestSettings, ToolChoice};
    ///
    /// let settings = RequestSettings::new().temperature(0.2).reasoning(Effort::Low).tool_choice(ToolChoice::Required);
    /// let agent = Agent::new(ScriptedModel::new([])).settings(settings);
    /// # let _ = agent;
    /// ```
    pub fn settings(mut self, settings: RequestSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets what a million tokens cost, in the unit of the policy's cost budget; zero by default.
    pub const fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Starts a conversation on a run.
    #[must_use]
    pub fn converse(&self, run: Run) -> Conversation {
        Conversation { agent: self.clone(), run, state: State::default() }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("model", &self.model.name()).finish_non_exhaustive()
    }
}
