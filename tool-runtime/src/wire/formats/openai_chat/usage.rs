//! The token counts of Chat Completions and its compatible servers.

use crate::wire::Usage;
use crate::wire::decode::fields::{Count, Object, shape};
use crate::wire::formats::openai::{OutputDetails, Read};

shape! {
    pub(super) struct Tokens {
        "prompt_tokens" => prompt_tokens: Count,
        "completion_tokens" => completion_tokens: Count,
        "prompt_tokens_details" => read: Object<Read>,
        "completion_tokens_details" => written: Object<OutputDetails>,
        /// `DeepSeek`'s name for `cached_tokens`.
        "prompt_cache_hit_tokens" => hit: Count,
        /// Gateways to Anthropic add this count.
        "cache_read_input_tokens" => cache_read: Count,
        "cache_creation_input_tokens" => cache_write: Count,
    }
}

impl Tokens {
    /// The token counts; `None` if the provider counted none.
    pub(super) fn usage(&self) -> Option<Usage> {
        let (input, output) = (self.prompt_tokens, self.completion_tokens);
        if input.count().is_none() && output.count().is_none() {
            return None;
        }
        let mut usage = Usage::new(input.count().unwrap_or(0), output.count().unwrap_or(0));
        let read = self.read.0.as_ref();
        let cached = [read.map(|read| read.cached), Some(self.hit), Some(self.cache_read)];
        let written = [read.map(|read| read.cache_write), Some(self.cache_write)];
        usage.cache_read_tokens = most(&cached);
        usage.cache_write_tokens = most(&written);
        usage.reasoning_tokens = self.written.0.as_ref().and_then(|written| written.reasoning.count()).unwrap_or(0);
        Some(usage)
    }
}

/// The largest count: gateways send one count under several names, and zero under names that they do not use.
fn most(counts: &[Option<Count>]) -> u64 {
    counts.iter().flatten().filter_map(|count| count.count()).max().unwrap_or(0)
}
