//! The parser of arguments accepts the same text as `serde_json`, except for the differences that it documents.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::arguments_agree_with_serde_json(text);
    }
});
