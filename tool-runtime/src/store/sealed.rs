//! [`SealedRecord`]: a record and its place in the chain of its run.

use serde::{Deserialize, Serialize};

use crate::store::chain::{Broken, is_as_written};
use crate::store::{AuditRecord, Finding};
use crate::tool::Hash;

/// A record and its place in the chain of its run.
///
/// [`AuditRecord`](crate::store::AuditRecord) has an example.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SealedRecord {
    /// The place of the record in the chain, from 0.
    pub sequence: u64,
    /// The record.
    pub record: AuditRecord,
    /// The hash of the previous record. Zeros for the first record.
    pub previous: Hash,
    /// SHA-256 over `previous`, `sequence`, the digest of the record with its salt, and the canonical JSON of the
    /// members that an erasure keeps. For a record without a `seal`, over `previous`, `sequence` and its canonical
    /// JSON.
    pub hash: Hash,
    /// The position of the record in the store from which it was read, for
    /// [`RecordFilter::after`](crate::store::RecordFilter::after). It is neither sealed nor serialized.
    #[serde(skip)]
    pub position: u64,
}

impl SealedRecord {
    /// Reads a record from the values that a store keeps: its place and position, its hashes as
    /// [`Hash`](crate::tool::Hash) displays them, and the JSON of [`record`](Self::record).
    ///
    /// ```
    /// use tool_runtime::store::SealedRecord;
    /// # use tool_runtime::store::{MemoryStore, RecordFilter, Store, StoreError};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// # let store = MemoryStore::new();
    /// for sealed in store.records(&RecordFilter::default()).await? {
    ///     let (run, json) = (sealed.record.run_id(), serde_json::to_string(&sealed.record)?);
    ///     let (previous, hash) = (sealed.previous.to_string(), sealed.hash.to_string());
    ///     SealedRecord::from_json(run, (sealed.sequence, sealed.position), (&previous, &hash), &json)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text or a hash cannot be read, or the text has unknown or repeated members, which the chain does not cover.
    /// The chain itself is not checked. Pass the error to [`StoreError::Corrupt`](crate::store::StoreError::Corrupt).
    pub fn from_json(
        run_id: &str,
        (sequence, position): (u64, u64),
        (previous, hash): (&str, &str),
        json: &str,
    ) -> Result<Self, Finding> {
        let wrong = |broken| Finding::of(run_id, sequence, broken, Some(position));
        let record = serde_json::from_str(json).map_err(|_| wrong(Broken::Unreadable))?;
        let hash_of = |text: &str| text.parse::<Hash>().map_err(|_| wrong(Broken::Unreadable));
        let read = Self { sequence, record, previous: hash_of(previous)?, hash: hash_of(hash)?, position };
        // Upper-case digits would parse to the same hash but are another text.
        let same_hashes = read.previous.to_string() == previous && read.hash.to_string() == hash;
        if same_hashes && is_as_written(json, &read.record) { Ok(read) } else { Err(wrong(Broken::Changed)) }
    }

    /// Returns the error of a record whose text differs from the parsed record.
    pub(super) fn changed(&self) -> Finding {
        Finding::of(self.record.run_id(), self.sequence, Broken::Changed, None)
    }
}
