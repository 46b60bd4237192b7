//! Single frames: what is JSON for a frame is what is JSON for `serde_json` and for the parser of arguments.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::a_frame_is_json_or_malformed(text);
    }
});
