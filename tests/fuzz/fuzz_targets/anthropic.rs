//! Streams of `anthropic`: any bytes give the same result in pieces of any size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tool_runtime::wire::Format;

fuzz_target!(|input: &[u8]| fuzz::every_cut_is_the_same(Format::Anthropic, input));
