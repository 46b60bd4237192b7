//! The adapter behind the tools: a warehouse in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tools::{Orders, Part, Stock};

/// A warehouse with three parts and no orders.
#[derive(Debug, Default)]
pub struct Warehouse {
    orders: Mutex<HashMap<String, u64>>,
}

const PARTS: [(&str, &str, u32, u32); 3] =
    [("P-10", "M4 screw", 1200, 3), ("P-11", "M5 screw", 80, 4), ("P-20", "hinge", 12, 250)];

impl Warehouse {
    /// How many orders were placed.
    #[must_use]
    pub fn placed(&self) -> usize {
        self.orders().len()
    }

    fn orders(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock for Warehouse {
    fn find(&self, text: &str) -> Vec<Part> {
        let text = text.to_lowercase();
        let matching = PARTS.iter().filter(|(_, name, ..)| name.to_lowercase().contains(&text));
        let part = |&(id, name, in_stock, purchase_price): &(&str, &str, u32, u32)| Part {
            id: id.to_owned(),
            name: name.to_owned(),
            in_stock,
            purchase_price,
        };
        matching.map(part).collect()
    }
}

impl Orders for Warehouse {
    fn place(&self, key: &str, part: &str, _count: u32) -> Option<u64> {
        PARTS.iter().find(|(id, ..)| *id == part)?;
        let mut orders = self.orders();
        let next = 1001 + orders.len() as u64;
        Some(*orders.entry(key.to_owned()).or_insert(next))
    }
}
