//! [`Chain`]: the hash chain over closed records. A record that is changed, removed or moved breaks it.

use std::fmt;

use crate::call::ToolInvocationRecord;
use crate::json::{self, canonical};
use crate::store::StoreError;
use crate::tool::Hash;

/// The end of a hash chain over closed records: a store seals the next record with it, a reader checks records against
/// it, page by page.
///
/// ```
/// use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let records = store.records(&RecordFilter::default()).await?;
/// let mut chain = Chain::new();
/// chain.follow(&records)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    head: Hash,
}

impl Chain {
    /// Creates a chain without records.
    #[must_use]
    pub const fn new() -> Self {
        Self::after(Hash([0; 32]))
    }

    /// Creates a chain whose last record has this hash.
    #[must_use]
    pub const fn after(head: Hash) -> Self {
        Self { head }
    }

    /// Returns the hash of the last record; zeros if there is none.
    #[must_use]
    pub const fn head(&self) -> Hash {
        self.head
    }

    /// Makes a record the next of the chain. Its hash is SHA-256 over the hash before it and the canonical JSON of the
    /// record without its own.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub fn seal(&mut self, record: &mut ToolInvocationRecord) -> Result<(), StoreError> {
        record.previous = Some(self.head);
        self.head = self.hash(record).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        record.hash = Some(self.head);
        Ok(())
    }

    /// Checks that these are the next records of the chain, and continues after them.
    ///
    /// # Errors
    /// The first record that was changed, removed, added, moved or never sealed. The chain then ends before it.
    pub fn follow(&mut self, records: &[ToolInvocationRecord]) -> Result<(), ChainError> {
        for (at, record) in records.iter().enumerate() {
            let (Some(previous), Some(hash)) = (record.previous, record.hash) else {
                return Err(ChainError { at, broken: "the record is not sealed" });
            };
            if previous != self.head {
                return Err(ChainError { at, broken: "a record before this one was removed, added or moved" });
            }
            if self.hash(record).ok() != Some(hash) {
                return Err(ChainError { at, broken: "the record was changed" });
            }
            self.head = hash;
        }
        Ok(())
    }

    /// Checks a part of a chain, whatever precedes it.
    ///
    /// # Errors
    /// The first record that was changed, removed, added, moved or never sealed.
    pub fn verify(records: &[ToolInvocationRecord]) -> Result<(), ChainError> {
        let previous = records.first().and_then(|record| record.previous);
        previous.map_or_else(Self::new, Self::after).follow(records)
    }

    /// Continues after a gap, so that the next record does not read as following the last one directly.
    pub(super) fn skip(&mut self, dropped: u64) {
        let mut link = self.head.0.to_vec();
        link.extend_from_slice(&dropped.to_be_bytes());
        self.head = json::digest(link);
    }

    fn hash(&self, record: &ToolInvocationRecord) -> Result<Hash, serde_json::Error> {
        let mut value = serde_json::to_value(record)?;
        if let Some(fields) = value.as_object_mut() {
            fields.remove("hash");
        }
        let mut text = self.head.0.to_vec();
        text.extend_from_slice(canonical::to_text(&value).as_bytes());
        Ok(json::digest(text))
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

/// A place where a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainError {
    /// The record, counted from 0 in what was checked.
    pub at: usize,
    broken: &'static str,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audit chain is broken at record {}: {}", self.at, self.broken)
    }
}

impl std::error::Error for ChainError {}
