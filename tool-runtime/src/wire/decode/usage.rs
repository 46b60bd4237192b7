//! [`Usage`]: the tokens of one response.

use serde::{Deserialize, Serialize};

/// The tokens of one response, as the provider counted them. A decoded response serialises `input_tokens` and
/// `output_tokens` only, and leaves out counts of a stream that broke off before its final ones.
///
/// ```
/// use tool_runtime::wire::Usage;
///
/// let usage = Usage::new(3, 10);
/// assert_eq!(usage.total(), 13);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache, if `input_tokens` does not include them (Anthropic).
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's cache, if `input_tokens` does not include them (Anthropic).
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens read, cached ones included, in earlier passes over the same request, such as compaction (Anthropic).
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier_input_tokens: u64,
    /// Tokens written in earlier passes over the same request (Anthropic).
    #[serde(skip_serializing_if = "is_zero")]
    pub earlier_output_tokens: u64,
    /// The provider announced these counts at the start; the final ones did not come.
    #[serde(skip)]
    pub(crate) provisional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Creates a usage without a cache.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            earlier_input_tokens: 0,
            earlier_output_tokens: 0,
            provisional: false,
        }
    }

    /// Returns all tokens read: from the request, from and into the cache, in earlier passes.
    #[must_use]
    pub const fn total_input(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
            .saturating_add(self.earlier_input_tokens)
    }

    /// Returns all tokens written, in earlier passes too.
    #[must_use]
    pub const fn total_output(&self) -> u64 {
        self.output_tokens.saturating_add(self.earlier_output_tokens)
    }

    /// Returns all tokens, read and written.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total_input().saturating_add(self.total_output())
    }

    /// The final counts without those of a cache, in the shape of a decoded response.
    pub(super) fn shown(&self) -> Option<Self> {
        (!self.provisional).then(|| Self::new(self.input_tokens, self.output_tokens))
    }
}
