//! Reading any text as a lock never panics, and writing a lock and reading it again gives the same lock.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::lock::locks_are_compared(text);
    }
});
