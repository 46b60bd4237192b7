//! Tools whose effects are lines of a file, a tool that only reads, and a tool that the client executes. One tool with
//! effects can look up its effect, and one may be repeated.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tool_runtime::{Call, Reconciled, ToolContext, ToolError, capability, tool};

use crate::crossing::Crossings;

/// Effects outside of the application.
#[capability(effect = external_side_effect)]
pub trait Outgoing {
    /// Writes a line to the disk, which counts as sending it.
    ///
    /// # Errors
    /// The file cannot be written.
    fn send(&self, line: &str) -> io::Result<()>;

    /// Sends a line with a key, unless the key is refused. Returns whether the line was sent.
    ///
    /// # Errors
    /// The file cannot be written.
    fn send_keyed(&self, key: &str, line: &str) -> io::Result<bool>;

    /// Returns whether a line was sent. If it was not, the key is refused from now on.
    ///
    /// # Errors
    /// A file cannot be read or written.
    fn settle(&self, key: &str, line: &str) -> io::Result<bool>;
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

/// Reserves a part. Whether it was reserved can be looked up.
#[tool(name = "parts__reserve", effect = external_side_effect, redact = ["$"])]
pub struct Reserve {
    /// The number of the part.
    part: u32,
}

#[tool]
impl Reserve {
    async fn run(self, outgoing: &dyn Outgoing, call: &Call<Self>) -> Result<String, ToolError> {
        if !sent(outgoing.send_keyed(&call.idempotency_key(), &self.line(call)))? {
            return Err(ToolError::code("refused"));
        }
        Ok(format!("reserved part {}", self.part))
    }

    async fn reconcile(self, outgoing: &dyn Outgoing, call: &Call<Self>) -> Result<Reconciled<String>, ToolError> {
        let was_sent = sent(outgoing.settle(&call.idempotency_key(), &self.line(call)))?;
        let reserved = || Reconciled::TookEffect(format!("reserved part {}", self.part));
        Ok(if was_sent { reserved() } else { Reconciled::Prevented })
    }
}

impl Reserve {
    fn line(&self, call: &ToolContext) -> String {
        format!("{} {} reserve {}", call.run_id(), call.call_id(), self.part)
    }
}

/// Confirms a reservation. The outside system recognizes the key, so the call may be repeated.
#[tool(name = "parts__confirm", effect = external_side_effect, idempotent, redact = ["$"])]
pub fn confirm(
    ctx: &ToolContext,
    outgoing: &dyn Outgoing,
    /// The number of the part.
    part: u32,
) -> Result<String, ToolError> {
    let key = ctx.idempotency_key();
    sent(outgoing.send(&format!("{} {} confirm {part} {key}", ctx.run_id(), ctx.call_id())))?;
    Ok(format!("confirmed part {part}"))
}

fn sent<T>(sent: io::Result<T>) -> Result<T, ToolError> {
    sent.map_err(|error| ToolError::code("not_sent").with_source(error))
}

/// A file that represents an outside system.
pub struct Outbox {
    file: Mutex<File>,
    /// The path of the file, to read the lines of other processes.
    path: PathBuf,
    crossings: Arc<Crossings>,
}

impl Outbox {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, crossings: Arc<Crossings>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Mutex::new(file), path: path.to_owned(), crossings })
    }

    fn append(&self, line: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// Locks the outside system for this process. A killed process releases the lock.
    fn locked(&self) -> io::Result<File> {
        let lock = OpenOptions::new().create(true).append(true).open(self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Returns the path of the file whose existence means that the key is refused.
    fn refusal(&self, key: &str) -> PathBuf {
        self.path.with_file_name(format!("refused-{key}"))
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
        self.append(line)?;
        self.crossings.cross("after the effect");
        Ok(())
    }

    fn send_keyed(&self, key: &str, line: &str) -> io::Result<bool> {
        self.crossings.cross("before the effect");
        let lock = self.locked()?;
        let is_refused = self.refusal(key).exists();
        if !is_refused {
            self.append(line)?;
        }
        drop(lock);
        self.crossings.cross("after the effect");
        Ok(!is_refused)
    }

    fn settle(&self, key: &str, line: &str) -> io::Result<bool> {
        self.crossings.cross("before the look-up");
        let lock = self.locked()?;
        let was_sent = std::fs::read_to_string(&self.path)?.lines().any(|sent| sent == line);
        if !was_sent {
            File::create(self.refusal(key))?.sync_all()?;
        }
        drop(lock);
        self.crossings.cross("after the look-up");
        Ok(was_sent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;
    use tool_runtime::ToolCatalog;
    use tool_runtime::testing::{Fault, Harness, harness};

    use super::{Outgoing, Stock};

    /// An outside system in memory.
    #[derive(Default)]
    struct Sent(Mutex<Vec<String>>);

    impl Outgoing for Sent {
        fn send(&self, line: &str) -> std::io::Result<()> {
            self.0.lock().map_err(|_| std::io::Error::other("poisoned"))?.push(line.to_owned());
            Ok(())
        }

        fn send_keyed(&self, _: &str, line: &str) -> std::io::Result<bool> {
            self.send(line).map(|()| true)
        }

        fn settle(&self, _: &str, line: &str) -> std::io::Result<bool> {
            Ok(self.0.lock().map_err(|_| std::io::Error::other("poisoned"))?.iter().any(|sent| sent == line))
        }
    }

    impl Stock for Sent {
        fn missing(&self) -> Vec<u32> {
            vec![7]
        }
    }

    fn parts() -> Harness {
        let sent = std::sync::Arc::new(Sent::default());
        let catalog = ToolCatalog::collect().expect("the tools fit together");
        harness(catalog).with::<dyn Outgoing>(sent.clone()).with::<dyn Stock>(sent)
    }

    #[test]
    fn schemas_and_parsers_agree() {
        tool_runtime::assert_catalog_ok!();
    }

    #[tokio::test]
    async fn an_order_is_sent_once() {
        let parts = parts();
        parts.call("parts__list", json!({})).await.assert_value(json!([7]));
        let ordered = parts.call("parts__order", json!({ "part": 7 })).await;
        ordered.assert_value(json!("ordered part 7")).assert_capability_calls(["Outgoing::send"]);
        parts.call("parts__scan", json!({ "part": 7 })).await.assert_outcome("client_required");
    }

    /// A panicked tool may have made the payment, so a person decides on the next one.
    #[tokio::test]
    async fn a_payment_after_a_fault_waits_for_a_person() {
        let parts = parts().fault("parts__pay", Fault::Panic);
        let paid = parts.call("parts__pay", json!({ "cents": 100 })).await;
        paid.assert_outcome("outcome_unknown").assert_capability_calls([]);
        parts.heal("parts__pay");
        parts.call("parts__pay", json!({ "cents": 100 })).await.assert_outcome("approval_required");
    }
}
