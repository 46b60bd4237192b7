//! [`Agent`]: a model and how it is let loose.

use std::fmt;
use std::sync::Arc;

use crate::agent::state::State;
use crate::agent::{Conversation, ModelClient};
use crate::runner::Run;
use crate::wire::Usage;

/// A model and how it is let loose. Cheap to clone.
#[derive(Clone)]
#[must_use]
pub struct Agent {
    pub(super) model: Arc<dyn ModelClient>,
    pub(super) instructions: Option<Arc<str>>,
    pub(super) guidance: bool,
    pub(super) max_iterations: u32,
    pub(super) parallel: usize,
    prices: (f64, f64),
}

impl Agent {
    /// An agent with this model: 16 iterations for one answer, calls one after the other, guidance from the catalog.
    pub fn new(model: Arc<dyn ModelClient>) -> Self {
        Self { model, instructions: None, guidance: true, max_iterations: 16, parallel: 1, prices: (0.0, 0.0) }
    }

    /// Instructions that stand before the history.
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Whether the catalog's guidance (never invent ids, list first, ..) follows the instructions; it does by default.
    pub const fn guidance(mut self, wanted: bool) -> Self {
        self.guidance = wanted;
        self
    }

    /// How often the model may be asked for one answer.
    pub const fn max_iterations(mut self, times: u32) -> Self {
        self.max_iterations = times;
        self
    }

    /// How many neighbouring `read_only` calls of a turn may run at the same time; one by default.
    pub const fn parallel(mut self, calls: usize) -> Self {
        self.parallel = calls;
        self
    }

    /// What a million tokens read and a million tokens written cost, in the unit of the policy's cost budget.
    pub const fn prices(mut self, input: f64, output: f64) -> Self {
        self.prices = (input, output);
        self
    }

    /// Starts a conversation on a run.
    #[must_use]
    pub fn converse(&self, run: Run) -> Conversation {
        Conversation { agent: self.clone(), run, state: State::default() }
    }

    pub(super) fn cost(&self, usage: Usage) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a cost is an estimate")]
        let price = |tokens: u64, per_million: f64| tokens as f64 / 1e6 * per_million;
        price(usage.input_tokens, self.prices.0) + price(usage.output_tokens, self.prices.1)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("model", &self.model.model()).finish_non_exhaustive()
    }
}
