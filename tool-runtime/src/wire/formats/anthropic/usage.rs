//! The tokens of a message, from all the events that count them.

use crate::wire::Usage;
use crate::wire::decode::fields::{Integer, List, Object, shape};

shape! {
    pub(super) struct Tokens {
        "input_tokens" => input: Integer,
        "output_tokens" => output: Integer,
        "cache_read_input_tokens" => cache_read: Integer,
        "cache_creation_input_tokens" => cache_write: Integer,
        "output_tokens_details" => written: Object<Written>,
        "iterations" => iterations: List<Pass>,
    }
}

shape! {
    struct Written {
        "thinking_tokens" => thinking: Integer,
    }
}

shape! {
    /// One pass over the request.
    struct Pass {
        "input_tokens" => input: Integer,
        "output_tokens" => output: Integer,
        "cache_read_input_tokens" => cache_read: Integer,
        "cache_creation_input_tokens" => cache_write: Integer,
    }
}

impl Pass {
    fn usage(&self) -> Usage {
        let count = |count: Integer| count.count().unwrap_or(0);
        let usage = Usage::new(count(self.input), count(self.output));
        let (cache_read_tokens, cache_write_tokens) = (count(self.cache_read), count(self.cache_write));
        Usage { cache_read_tokens, cache_write_tokens, cache_is_apart: true, ..usage }
    }
}

impl Tokens {
    /// Later counts replace earlier ones. Some gateways write zero tokens read at the end: the start's count stays.
    pub(super) fn update(&self, usage: &mut Usage) {
        let read = self.input.count().filter(|tokens| *tokens > 0);
        usage.input_tokens = read.unwrap_or(usage.input_tokens);
        usage.cache_read_tokens = self.cache_read.count().unwrap_or(usage.cache_read_tokens);
        usage.cache_write_tokens = self.cache_write.count().unwrap_or(usage.cache_write_tokens);
        usage.cache_is_apart = usage.cache_read_tokens > 0 || usage.cache_write_tokens > 0;
        usage.output_tokens = self.output.count().unwrap_or(0);
        let thinking = self.written.0.as_ref().and_then(|written| written.thinking.count());
        usage.reasoning_tokens = thinking.unwrap_or(usage.reasoning_tokens);
        // The counts of the message are those of the last pass; earlier ones, such as compaction, were paid too.
        let passes: Vec<Usage> = self.iterations.iter().map(Pass::usage).collect();
        if let Some((_, earlier)) = passes.split_last() {
            let sum =
                |count: fn(&Usage) -> u64| earlier.iter().fold(0, |sum: u64, pass| sum.saturating_add(count(pass)));
            usage.earlier_input_tokens = sum(Usage::total_input);
            usage.earlier_output_tokens = sum(Usage::total_output);
        }
    }
}
