//! Picking takes any text as a definition and as a query.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::pick::picks_are_sound(text);
    }
});
