//! Counts the tokens of a message over all its events.

use crate::wire::Usage;
use crate::wire::decode::fields::{Count, List, Object, shape};

shape! {
    pub(super) struct Tokens {
        "input_tokens" => input: Count,
        "output_tokens" => output: Count,
        "cache_read_input_tokens" => cache_read: Count,
        "cache_creation_input_tokens" => cache_write: Count,
        "output_tokens_details" => written: Object<OutputDetails>,
        "iterations" => iterations: List<Pass>,
    }
}

shape! {
    struct OutputDetails {
        "thinking_tokens" => thinking: Count,
    }
}

shape! {
    /// The tokens of one pass of a model over the request: an entry of `iterations`.
    struct Pass {
        "input_tokens" => input: Count,
        "output_tokens" => output: Count,
        "cache_read_input_tokens" => cache_read: Count,
        "cache_creation_input_tokens" => cache_write: Count,
    }
}

/// The numbers of input tokens, tokens read from the cache, tokens written to the cache, and output tokens.
type Kinds = [u64; 4];

impl Pass {
    fn kinds(&self) -> Kinds {
        [self.input, self.cache_read, self.cache_write, self.output].map(|count| count.count().unwrap_or(0))
    }
}

/// The counts of the events of one message.
#[derive(Default)]
pub(super) struct Counts {
    message: Usage,
    /// The sums over all passes of the request.
    passes: Kinds,
}

impl Counts {
    /// Marks the counts as provisional: the message has started.
    pub(super) const fn begin(&mut self) {
        self.message.provisional = true;
    }

    /// Marks the counts as final.
    pub(super) const fn settle(&mut self) {
        self.message.provisional = false;
    }

    /// Adds the counts of an event and returns the tokens so far. Later counts replace earlier ones, except that zero
    /// input tokens are ignored: some gateways send this count at the end. If an event has no output tokens, their
    /// number becomes 0.
    pub(super) fn update(&mut self, tokens: &Tokens) -> Usage {
        let message = &mut self.message;
        let read = tokens.input.count().filter(|tokens| *tokens > 0);
        message.input_tokens = read.unwrap_or(message.input_tokens);
        message.cache_read_tokens = tokens.cache_read.count().unwrap_or(message.cache_read_tokens);
        message.cache_write_tokens = tokens.cache_write.count().unwrap_or(message.cache_write_tokens);
        message.output_tokens = tokens.output.count().unwrap_or(message.output_tokens);
        let thinking = tokens.written.0.as_ref().and_then(|written| written.thinking.count());
        message.reasoning_tokens = thinking.unwrap_or(message.reasoning_tokens);
        if !tokens.iterations.is_empty() {
            let add = |sum: Kinds, pass: &Pass| {
                let [input, read, write, output] = pass.kinds();
                let [sum_input, sum_read, sum_write, sum_output] = sum;
                [
                    sum_input.saturating_add(input),
                    sum_read.saturating_add(read),
                    sum_write.saturating_add(write),
                    sum_output.saturating_add(output),
                ]
            };
            self.passes = tokens.iterations.iter().fold(Kinds::default(), add);
        }
        self.usage()
    }

    /// The counts of the message and the additional counts of the passes. By Anthropic's documentation, the message
    /// counts the passes of the model that answers ("Advisor tool", usage). It does not count passes of a compaction
    /// (`BetaUsage.iterations` in its SDKs), of an advisor or of a model that declined ("Refusals and fallback"). All
    /// of them cost money.
    fn usage(&self) -> Usage {
        let mut usage = self.message;
        let [input, read, write, output] = self.passes;
        usage.earlier_input_tokens = input.saturating_sub(usage.input_tokens);
        usage.earlier_output_tokens = output.saturating_sub(usage.output_tokens);
        usage.cache_read_tokens = usage.cache_read_tokens.max(read);
        usage.cache_write_tokens = usage.cache_write_tokens.max(write);
        usage.cache_is_apart = usage.cache_read_tokens > 0 || usage.cache_write_tokens > 0;
        usage
    }
}
