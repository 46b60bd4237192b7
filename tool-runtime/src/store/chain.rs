//! [`Chain`]: the hash chain over the records of a run. A record that is changed, removed or moved breaks it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::json::{self, canonical};
use crate::store::kept::{self, canonical_text};
use crate::store::{AuditRecord, Finding, SealedRecord, StoreError};
use crate::tool::{Hash, Hashing};

/// The end of the hash chain over the records of one run. A store seals the next record with it.
///
/// ```
/// use tool_runtime::store::{Chain, MemoryStore, RecordFilter, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let records = store.records(&RecordFilter::default()).await?;
/// Chain::verify(&records)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    next: u64,
    head: Hash,
}

impl Chain {
    /// Creates a chain without records.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 0, head: Hash([0; 32]) }
    }

    /// Creates a chain that continues after a record.
    #[must_use]
    pub const fn after(sequence: u64, hash: Hash) -> Self {
        // A forged record can have the largest number, so the addition saturates.
        Self { next: sequence.saturating_add(1), head: hash }
    }

    /// Creates a chain whose first `dropped` records were removed. The place of its next record is `dropped`.
    pub(super) fn after_gap(dropped: u64) -> Self {
        match dropped.checked_sub(1) {
            None => Self::new(),
            Some(last) => Self::after(last, json::digest(dropped.to_be_bytes())),
        }
    }

    /// Returns the hash of the last record. Zeros if there is none.
    #[must_use]
    pub const fn head(&self) -> Hash {
        self.head
    }

    /// Seals a record as the next record of the chain.
    ///
    /// The record of a call or of a decision is sealed in two parts. Its hash covers the members that an erasure keeps,
    /// and a digest of the whole record with a random salt. An erased record has the digest in place of the salt. Its
    /// hash therefore stays the same, and no other contents have this hash.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub fn seal(&mut self, record: AuditRecord) -> Result<SealedRecord, StoreError> {
        let corrupt = |error| StoreError::Corrupt(Box::new(error));
        let record = kept::salted(written_once(record).map_err(corrupt)?);
        let hash = self.hash(&record).map_err(corrupt)?;
        let sealed = SealedRecord { sequence: self.next, record, previous: self.head, hash, position: 0 };
        *self = Self::after(sealed.sequence, hash);
        Ok(sealed)
    }

    /// Checks records of any number of runs. The records of each run must be in order, and may begin at any place.
    /// [`Verification`](crate::store::Verification) also checks whether erased records were erased legitimately.
    ///
    /// # Errors
    /// The first record that was changed, removed, added or moved.
    pub fn verify(records: &[SealedRecord]) -> Result<(), Finding> {
        let mut chains: HashMap<&Arc<str>, Self> = HashMap::new();
        for (at, sealed) in records.iter().enumerate() {
            let first = Self { next: sealed.sequence, head: sealed.previous };
            let run_id = sealed.record.run_id();
            let chain = chains.entry(run_id).or_insert(first);
            let wrong = |broken| Finding::of(run_id, sealed.sequence, broken, None).at(at);
            chain.follow(sealed).map_err(wrong)?;
        }
        Ok(())
    }

    /// Returns the place of the next record.
    pub(in crate::store) const fn next(&self) -> u64 {
        self.next
    }

    /// Checks that a record is the next one of the chain, and moves the end of the chain to it.
    pub(super) fn follow(&mut self, sealed: &SealedRecord) -> Result<(), Broken> {
        // No record may have the largest number, because the next record would have the same number.
        if sealed.sequence != self.next || sealed.sequence == u64::MAX {
            let after = sealed.sequence > self.next;
            return Err(if after { Broken::Missing(self.next) } else { Broken::Repeated });
        }
        if sealed.previous != self.head {
            return Err(Broken::Unlinked);
        }
        if self.hash(&sealed.record).ok() != Some(sealed.hash) {
            return Err(Broken::Changed);
        }
        *self = Self::after(sealed.sequence, sealed.hash);
        Ok(())
    }

    fn hash(&self, record: &AuditRecord) -> Result<Hash, serde_json::Error> {
        let mut hashing = Hashing::default();
        hashing.update(&self.head.0);
        hashing.update(&self.next.to_be_bytes());
        // A record that is sealed in one part begins with a brace, so it cannot be mistaken for a record in two parts.
        if let Some((digest, rest)) = kept::parts(record)? {
            hashing.update(&[TWO_PARTS]);
            hashing.update(&digest.0);
            hashing.update(canonical_text(&rest)?.as_bytes());
        } else {
            hashing.update(canonical_text(record)?.as_bytes());
        }
        Ok(hashing.finish())
    }
}

/// The byte before the parts of a record.
const TWO_PARTS: u8 = 2;

/// Keeps only the last of repeated members in a record's JSON. A reader that takes the first one would otherwise read a
/// value that was not sealed.
fn written_once(record: AuditRecord) -> Result<AuditRecord, serde_json::Error> {
    let text = serde_json::to_string(&record)?;
    match json::parse_record(&text) {
        Ok(_) => Ok(record),
        Err(_) => serde_json::from_str(&serde_json::from_str::<Value>(&text)?.to_string()),
    }
}

/// Whether a JSON text has exactly the members of a value, with none added or repeated. The order of members and the
/// spelling of numbers do not matter, because stores may change them.
pub(crate) fn is_as_written(text: &str, value: &impl serde::Serialize) -> bool {
    let Ok(written) = serde_json::to_string(value) else { return false };
    let canonical = |text: &str| json::parse_record(text).map(|tree| canonical::to_text(&tree)).ok();
    canonical(text).is_some_and(|text| Some(text) == canonical(&written))
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

/// A defect of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Records from this place up to the record are missing.
    Missing(u64),
    /// Another record already has its place.
    Repeated,
    /// The record does not link to the previous record.
    Unlinked,
    /// The contents of the record differ from the sealed ones.
    Changed,
    /// The record cannot be read.
    Unreadable,
    /// The store indexes the record under values that the record does not contain.
    Misfiled,
    /// The record states a removal or a legal hold, and its signature is wrong.
    Forged,
    /// The record states a removal or a legal hold, and the key of its signature is not known.
    Unchecked,
    /// The record is erased, and no signed record lists it.
    Unlisted,
    /// A signed record lists the record as erased, but it still has its values.
    Undone,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(from) => write!(f, "records before it are missing, from number {from} on"),
            Self::Repeated => f.write_str("another record has its place"),
            Self::Unlinked => f.write_str("it does not follow the record before it: one of them was replaced or moved"),
            Self::Changed => f.write_str("it was changed after it was sealed"),
            Self::Unreadable => f.write_str("it cannot be read"),
            Self::Misfiled => f.write_str("the columns of its row differ from the record"),
            Self::Forged => f.write_str("it states a removal or a legal hold, and its signature is wrong"),
            Self::Unchecked => f.write_str(
                "it states a removal or a legal hold, and the key of its signature is neither available nor accepted",
            ),
            Self::Unlisted => f.write_str("it is erased, and no record of an erasure lists it"),
            Self::Undone => f.write_str("a signed record lists it as erased, and its values were put back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::record;

    #[test]
    fn the_text_is_that_of_the_value() {
        for result in [
            "null",
            r#"{"b":[1,2.0,-0.0,0.5,1e3,1e21,1e-7,123456789012345678901234567890,18446744073709551615],"a":{}}"#,
            r#"{"a":1,"b":{"c":"\u00e5\n\"","c":2},"a":-9223372036854775808}"#,
            r#" [ "\ud83d\ude00" , true , {"\u00e9":1,"z":2,"\ud83d\ude00":3} ] "#,
        ] {
            let mut one = record("run", "c1");
            one.result = Some(serde_json::from_str::<Box<serde_json::value::RawValue>>(result).unwrap().into());
            let one = AuditRecord::from(one);
            let value = serde_json::to_value(&one).unwrap();
            assert_eq!(canonical_text(&one).unwrap(), canonical::to_text(&value), "{result}");
        }
    }
}
