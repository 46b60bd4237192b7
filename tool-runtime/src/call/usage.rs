//! [`Usage`]: the tokens of one response, or of a run.

use serde::{Deserialize, Serialize};

/// The tokens of one response, as the provider counted them, or the sum over a run. A decoded response serialises only
/// `input_tokens` and `output_tokens`, and no counts if the stream broke off before the final counts.
///
/// ```
/// use tool_runtime::wire::Usage;
///
/// let mut usage = Usage::new(3, 10);
/// usage.cache_read_tokens = 2;
/// assert_eq!((usage.uncached_input(), usage.total()), (1, 13));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache, in all passes of the provider over the request.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's cache, in all passes of the provider over the request.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Whether the counts of the cache are not a part of `input_tokens`, but come in addition (Anthropic).
    #[serde(skip_serializing_if = "is_false")]
    pub cache_is_apart: bool,
    /// The part of `output_tokens` that is reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// Tokens read outside the cache in other passes over the same request: compaction, an advisor (Anthropic), results
    /// of the provider's own tools (Gemini).
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier_input_tokens: u64,
    /// Tokens written in other passes over the same request (Anthropic).
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier_output_tokens: u64,
    /// Whether a count is an estimate, because the provider sent no usable count.
    #[serde(skip_serializing_if = "is_false")]
    pub estimated: bool,
    /// Whether the provider announced these counts at the start, and the final counts did not arrive.
    #[serde(skip)]
    pub(crate) provisional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Usage {
    /// Creates a usage without a cache and without reasoning.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            cache_is_apart: false,
            reasoning_tokens: 0,
            earlier_input_tokens: 0,
            earlier_output_tokens: 0,
            estimated: false,
            provisional: false,
        }
    }

    /// Returns all tokens read, including those read from and written to the cache, and those of other passes.
    #[must_use]
    pub const fn total_input(&self) -> u64 {
        let read = self.input_tokens.saturating_add(self.earlier_input_tokens);
        if self.cache_is_apart {
            read.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
        } else {
            read
        }
    }

    /// Returns the tokens read that were neither read from the cache nor written to it.
    #[must_use]
    pub const fn uncached_input(&self) -> u64 {
        self.total_input().saturating_sub(self.cache_read_tokens).saturating_sub(self.cache_write_tokens)
    }

    /// Returns all tokens written, including those of other passes.
    #[must_use]
    pub const fn total_output(&self) -> u64 {
        self.output_tokens.saturating_add(self.earlier_output_tokens)
    }

    /// Returns all tokens, read and written.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total_input().saturating_add(self.total_output())
    }

    /// Returns the sum of both usages. Its `input_tokens` and `output_tokens` include the cache and other passes.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            estimated: self.estimated || other.estimated,
            ..Self::new(
                self.total_input().saturating_add(other.total_input()),
                self.total_output().saturating_add(other.total_output()),
            )
        }
    }

    /// Returns the counts that a decoded response serialises. `None` if the final counts did not arrive.
    pub(crate) fn shown(&self) -> Option<Self> {
        (!self.provisional).then(|| Self::new(self.input_tokens, self.output_tokens))
    }
}
