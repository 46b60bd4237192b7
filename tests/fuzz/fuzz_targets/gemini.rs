//! Streams of `gemini`: any cut of any bytes gives what the whole gives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tool_runtime::wire::Format;

fuzz_target!(|input: &[u8]| fuzz::every_cut_is_the_same(Format::Gemini, input));
