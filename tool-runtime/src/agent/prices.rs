//! [`Prices`]: the prices of tokens, by kind.

use crate::wire::Usage;

/// The prices of a million tokens, in the unit of the policy's cost budget. Cache tokens without a price cost as much
/// as input tokens. Reasoning tokens without a price cost as much as output tokens.
///
/// ```
/// use tool_runtime::agent::Prices;
/// use tool_runtime::wire::Usage;
///
/// let prices = Prices::new(3.0, 15.0).cache_read(0.3).cache_write(3.75);
/// let mut usage = Usage::new(1_000_000, 100_000);
/// usage.cache_read_tokens = 900_000;
/// assert!((prices.cost(&usage) - 2.07).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[must_use]
pub struct Prices {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    reasoning: Option<f64>,
}

impl Prices {
    /// Creates prices of a million input tokens and of a million output tokens.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: None, cache_write: None, reasoning: None }
    }

    /// Sets the price of a million tokens read from the provider's cache.
    pub const fn cache_read(mut self, price: f64) -> Self {
        self.cache_read = Some(price);
        self
    }

    /// Sets the price of a million tokens written to the provider's cache.
    pub const fn cache_write(mut self, price: f64) -> Self {
        self.cache_write = Some(price);
        self
    }

    /// Sets the price of a million tokens of reasoning.
    pub const fn reasoning(mut self, price: f64) -> Self {
        self.reasoning = Some(price);
        self
    }

    /// Returns the cost of these tokens, in the unit of the prices.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a cost is an estimate")]
        let price = |tokens: u64, per_million: f64| tokens as f64 / 1e6 * per_million;
        let answer = usage.total_output().saturating_sub(usage.reasoning_tokens);
        price(usage.uncached_input(), self.input)
            + price(usage.cache_read_tokens, self.cache_read.unwrap_or(self.input))
            + price(usage.cache_write_tokens, self.cache_write.unwrap_or(self.input))
            + price(answer, self.output)
            + price(usage.reasoning_tokens, self.reasoning.unwrap_or(self.output))
    }
}
