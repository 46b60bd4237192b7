use std::sync::Arc;

use tool_runtime::{Capabilities, capability};

/// Reads the stock.
#[capability(effect = read_only)]
trait Stock {
    fn count(&self) -> u32;
}

struct Shelf;

impl Stock for Shelf {
    fn count(&self) -> u32 {
        3
    }
}

fn main() {
    let _ = Capabilities::new().with(Arc::new(Shelf));
}
