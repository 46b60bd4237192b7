//! [`Warehouse`]: the adapter that the tools borrow. It keeps orders in memory or in a file.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tools::{Order, Orders, Part, Stock};

/// The number of the first order.
const FIRST: u64 = 1001;

/// A warehouse with three parts.
#[derive(Debug, Default)]
pub struct Warehouse {
    orders: Mutex<HashMap<String, u64>>,
    /// The file with the orders, which several processes can share.
    file: Option<PathBuf>,
}

const PARTS: [(&str, &str, u32, u32); 3] =
    [("P-10", "M4 screw", 1200, 3), ("P-11", "M5 screw", 80, 4), ("P-20", "hinge", 12, 250)];

impl Warehouse {
    /// Creates a warehouse that appends its orders to a file, one per line.
    pub fn open(file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..Self::default() }
    }

    /// Returns the number of orders in memory.
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
    fn place(&self, key: &str, order: &Order) -> io::Result<Option<u64>> {
        if !PARTS.iter().any(|(id, ..)| *id == order.part) {
            return Ok(None);
        }
        // The lock is held while the file is written, too.
        let mut orders = self.orders();
        let Some(path) = &self.file else {
            let next = FIRST + orders.len() as u64;
            return Ok(Some(*orders.entry(key.to_owned()).or_insert(next)));
        };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // Two processes can place orders at the same time. Closing the file unlocks it.
        file.lock()?;
        let mut placed = String::new();
        file.read_to_string(&mut placed)?;
        let known = placed.lines().position(|line| line.split(' ').next() == Some(key));
        if known.is_none() {
            let ship_to = order.ship_to.as_deref().unwrap_or("the warehouse").replace(char::is_control, " ");
            file.write_all(format!("{key} {} {} {ship_to}\n", order.count, order.part).as_bytes())?;
        }
        Ok(Some(FIRST + known.unwrap_or_else(|| placed.lines().count()) as u64))
    }
}
