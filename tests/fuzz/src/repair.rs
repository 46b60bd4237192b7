//! The repairers: they write only text that they read.

use tool_runtime::__workspace::{Limits, REPAIRERS, parse};

pub fn repairs_invent_nothing(text: &str) {
    // The gate asks no repairer if the text is an object.
    if parse(text, &Limits { bytes: usize::MAX, depth: usize::MAX }).is_ok() {
        return;
    }
    for (name, repair) in REPAIRERS {
        let Some(after) = repair(text) else { continue };
        assert!(after.len() <= text.len(), "{name} adds nothing");
        if name == "double_encoded" {
            assert_eq!(serde_json::from_str(text.trim()).ok(), Some(after), "one level of quoting");
            continue;
        }
        // Quotes may differ and commas may be missing. Every other character is from the text, in the same order.
        let mut read = text.chars();
        for written in after.chars().filter(|&written| written != '"') {
            assert!(read.any(|read| read == written), "{name} wrote {written:?}");
        }
    }
}
