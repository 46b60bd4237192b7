//! The hash chain over closed records: a record that is changed, removed or moved breaks it.

use std::fmt;

use crate::call::ToolInvocationRecord;
use crate::json::{self, canonical};
use crate::store::StoreError;
use crate::tool::Hash;

/// The hash that the first record of a chain follows.
pub const GENESIS: Hash = Hash([0; 32]);

/// Makes a record the next one after `previous`, and returns its hash: SHA-256 over `previous` and the canonical
/// JSON of the record without its hash.
///
/// # Errors
/// The record cannot be written as JSON.
pub fn seal(previous: Hash, record: &mut ToolInvocationRecord) -> Result<Hash, StoreError> {
    record.previous = Some(previous);
    let hash = digest(previous, record).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
    record.hash = Some(hash);
    Ok(hash)
}

/// Checks a part of a chain, whatever it follows.
///
/// # Errors
/// The first record that was changed, removed, added, moved or never sealed.
pub fn verify(records: &[ToolInvocationRecord]) -> Result<(), ChainError> {
    match records.first() {
        None => Ok(()),
        Some(ToolInvocationRecord { previous: Some(previous), .. }) => verify_after(*previous, records),
        Some(_) => Err(ChainError { at: 0, broken: "the record is not sealed" }),
    }
}

/// Checks a part of a chain that follows `previous`; [`GENESIS`] for one that must be whole from its first record.
///
/// # Errors
/// The first record that was changed, removed, added, moved or never sealed.
pub fn verify_after(previous: Hash, records: &[ToolInvocationRecord]) -> Result<(), ChainError> {
    let mut previous = previous;
    for (at, record) in records.iter().enumerate() {
        let (Some(follows), Some(hash)) = (record.previous, record.hash) else {
            return Err(ChainError { at, broken: "the record is not sealed" });
        };
        if follows != previous {
            return Err(ChainError { at, broken: "a record before this one was removed, added or moved" });
        }
        if digest(previous, record).ok() != Some(hash) {
            return Err(ChainError { at, broken: "the record was changed" });
        }
        previous = hash;
    }
    Ok(())
}

/// A place where a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainError {
    /// The record, counted from 0.
    pub at: usize,
    broken: &'static str,
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audit chain is broken at record {}: {}", self.at, self.broken)
    }
}

impl std::error::Error for ChainError {}

/// The link over a gap, so that the next record does not read as following `head` directly.
pub(super) fn skip(head: Hash, dropped: u64) -> Hash {
    let mut link = head.0.to_vec();
    link.extend_from_slice(&dropped.to_be_bytes());
    json::digest(link)
}

fn digest(previous: Hash, record: &ToolInvocationRecord) -> Result<Hash, serde_json::Error> {
    let mut value = serde_json::to_value(record)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("hash");
    }
    let mut text = previous.0.to_vec();
    text.extend_from_slice(canonical::to_text(&value).as_bytes());
    Ok(json::digest(text))
}
