//! [`Sealed`]: a record in its place in the chain of its run.

use serde::{Deserialize, Serialize};

use crate::store::AuditRecord;
use crate::store::chain::{Broken, ChainError};
use crate::tool::Hash;

/// A record in its place in the chain of its run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sealed {
    /// Its place, counted from 0.
    pub sequence: u64,
    /// The record.
    pub record: AuditRecord,
    /// The hash of the record before it; zeros for the first.
    pub previous: Hash,
    /// SHA-256 over `previous`, `sequence` and the canonical JSON of the record.
    pub hash: Hash,
    /// Its position among all records of the store that it was read from, for
    /// [`RecordFilter::after`](crate::store::RecordFilter::after). It is neither sealed nor written.
    #[serde(skip)]
    pub position: u64,
}

impl Sealed {
    /// The error of a record whose text differs from the parsed record.
    pub(super) fn changed(&self) -> ChainError {
        ChainError::of(self.record.run_id(), self.sequence, Broken::Changed, None)
    }
}
