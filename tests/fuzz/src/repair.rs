//! The repairers: what they write was in the text that they read.

use tool_runtime::__workspace::{Limits, REPAIRERS, parse};

pub fn repairs_invent_nothing(text: &str) {
    // The gate asks no repairer about text that is an object.
    if parse(text, &Limits { bytes: usize::MAX, depth: usize::MAX }).is_ok() {
        return;
    }
    for repairer in REPAIRERS {
        let Some(after) = repairer.repair(text) else { continue };
        assert!(after.len() <= text.len(), "{} adds nothing", repairer.name());
        if repairer.name() == "double_encoded" {
            assert_eq!(serde_json::from_str(text.trim()).ok(), Some(after), "one level of quoting");
            continue;
        }
        // Quotes may be others and commas may be missing; every other character is one of the text, in its order.
        let mut read = text.chars();
        for written in after.chars().filter(|&written| written != '"') {
            assert!(read.any(|read| read == written), "{} wrote {written:?}", repairer.name());
        }
    }
}
