//! Single frames: the decoders agree with `serde_json` and with the parser of arguments on which text is JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        fuzz::a_frame_is_json_or_malformed(text);
    }
});
