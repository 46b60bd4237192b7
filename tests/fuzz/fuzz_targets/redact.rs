//! The redactor shows the same as a simple filter of trees.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::redact::only_what_is_listed_is_shown(text);
    }
});
