//! Locks take any text, and what they take is written as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::lock::locks_are_compared(text);
    }
});
