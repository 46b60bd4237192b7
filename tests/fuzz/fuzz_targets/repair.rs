//! Repairers take any text, and write only text that was in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::repair::repairs_invent_nothing(text);
    }
});
