//! Tools whose effects are lines of a file, one that only reads, and one that the client executes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tool_runtime::{ToolContext, ToolError, capability, tool};

use crate::crossing::Crossings;

/// Effects outside of the application.
#[capability(effect = external_side_effect)]
pub trait Outgoing {
    /// Sends a line, once it is on the disk.
    ///
    /// # Errors
    /// The file cannot be written.
    fn send(&self, line: &str) -> io::Result<()>;
}

/// Reads the stock.
#[capability(effect = read_only)]
pub trait Stock {
    /// Returns the numbers of the parts that are missing.
    fn missing(&self) -> Vec<u32>;
}

/// Lists the parts that are missing.
#[tool(name = "parts__list", effect = read_only, redact = ["$"])]
pub fn list(stock: &dyn Stock) -> Result<Vec<u32>, ToolError> {
    Ok(stock.missing())
}

/// Scans the label of a part, with the device of the person who asks.
#[tool(name = "parts__scan", effect = read_only, execution = client, client_result = u32, prepare = ["$"], redact = ["$"])]
pub fn scan(
    /// The number of the part.
    part: u32,
) -> Result<u32, ToolError> {
    Ok(part)
}

/// Orders parts.
#[tool(name = "parts__order", effect = external_side_effect, redact = ["$"])]
pub fn order(
    ctx: &ToolContext,
    outgoing: &dyn Outgoing,
    /// The number of the part.
    part: u32,
) -> Result<String, ToolError> {
    sent(outgoing.send(&format!("{} {} order {part}", ctx.run_id(), ctx.call_id())))?;
    Ok(format!("ordered part {part}"))
}

/// Pays for the parts that were ordered.
#[tool(name = "parts__pay", effect = external_side_effect, redact = ["$"])]
pub fn pay(
    ctx: &ToolContext,
    outgoing: &dyn Outgoing,
    /// How much, in cents.
    cents: u32,
) -> Result<String, ToolError> {
    sent(outgoing.send(&format!("{} {} pay {cents}", ctx.run_id(), ctx.call_id())))?;
    Ok(format!("paid {cents} cents"))
}

fn sent(sent: io::Result<()>) -> Result<(), ToolError> {
    sent.map_err(|error| ToolError::code("not_sent").with_source(error))
}

/// A file that represents an outside system.
pub struct Outbox {
    file: Mutex<File>,
    crossings: Arc<Crossings>,
}

impl Outbox {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, crossings: Arc<Crossings>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file), crossings })
    }
}

impl Stock for Outbox {
    fn missing(&self) -> Vec<u32> {
        self.crossings.cross("before the read");
        let missing = vec![7, 10];
        self.crossings.cross("after the read");
        missing
    }
}

impl Outgoing for Outbox {
    fn send(&self, line: &str) -> io::Result<()> {
        self.crossings.cross("before the effect");
        {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()?;
        }
        self.crossings.cross("after the effect");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn schemas_and_parsers_agree() {
        tool_runtime::assert_catalog_ok!();
    }
}
