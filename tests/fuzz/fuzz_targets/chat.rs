//! Bodies of chat UIs: `useChat` and AG-UI.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| fuzz::chat::only_what_waits_is_answered(input));
