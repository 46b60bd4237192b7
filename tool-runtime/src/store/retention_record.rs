//! [`RetentionRecord`]: the signed record of a removal or of a legal hold.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::call::{ArgumentDigest, CallId, Decider, DigestKey};
use crate::json::canonical;
use crate::store::{LegalHold, StoreError};
use crate::tool::Hash;

/// The purpose of the signatures. No other use of the key has the same purpose.
const PURPOSE: &str = "retention";

/// The record of a purge, an erasure or a legal hold, with the person, the time and the reason.
///
/// The record of a purge follows the records that it removed, and names the end of their chain. The record of an
/// erasure lists the places of the erased records of its run. All records of this type are signed, so that
/// [`Verification`](crate::store::Verification) finds a removal that this library did not make.
///
/// [`Retention`](crate::store::Retention) has an example.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetentionRecord {
    /// The run. Records of legal holds have a separate run, `tool-runtime:retention`.
    pub run_id: Arc<str>,
    /// The person who acted, with the reason.
    pub by: Decider,
    /// The time of the act, by the clock of the store.
    pub at: Timestamp,
    pub(in crate::store) act: Act,
    signature: ArgumentDigest,
}

/// The act that the record states.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum Act {
    /// A legal hold was placed.
    Held(LegalHold),
    /// A legal hold was lifted.
    Lifted(LegalHold),
    /// All records of the run before this one were removed.
    Purged {
        /// The place of the first record that this purge removed.
        first: u64,
        /// The place of this record, which follows the last removed record.
        end: u64,
        /// The hash of the last removed record.
        head: Hash,
        /// How many records were removed.
        records: u64,
    },
    /// The records of the run at these places were erased.
    Erased(Vec<u64>),
}

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Signed {
    Fits,
    Forged,
    /// The signature was made with another key.
    Unchecked,
}

impl RetentionRecord {
    pub(in crate::store) fn signed(
        run_id: impl Into<Arc<str>>,
        by: &Decider,
        at: Timestamp,
        act: Act,
        key: &DigestKey,
    ) -> Result<Self, StoreError> {
        let signature = ArgumentDigest::NONE;
        let mut record = Self { run_id: run_id.into(), by: by.clone(), at, act, signature };
        record.signature = record.computed(key).map_err(|error| StoreError::Corrupt(Box::new(error)))?;
        Ok(record)
    }

    /// Checks the signature with this key.
    pub(in crate::store) fn check(&self, key: Option<&DigestKey>) -> Signed {
        match key {
            Some(key) if self.signature.key_id() == Some(key.id()) => {
                let fits = self.computed(key).is_ok_and(|signature| signature == self.signature);
                if fits { Signed::Fits } else { Signed::Forged }
            }
            _ if self.signature.key_id().is_none() => Signed::Forged,
            _ => Signed::Unchecked,
        }
    }

    /// Returns the id of the key that signed the record.
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        self.signature.key_id()
    }

    fn computed(&self, key: &DigestKey) -> Result<ArgumentDigest, serde_json::Error> {
        let blank = Self { signature: ArgumentDigest::NONE, ..self.clone() };
        Ok(key.sign(PURPOSE, canonical::to_text(&serde_json::to_value(blank)?).as_bytes()))
    }

    /// Returns the place of the record of a purge, the hash of the last removed record, and the number of removed
    /// records. `None` for any other record.
    pub(in crate::store) const fn purged(&self) -> Option<(u64, Hash, u64)> {
        match &self.act {
            Act::Purged { end, head, records, .. } => Some((*end, *head, *records)),
            _ => None,
        }
    }

    /// Returns the stable code of the act: `hold_put`, `hold_lifted`, `purged` or `erased`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match &self.act {
            Act::Held(_) => "hold_put",
            Act::Lifted(_) => "hold_lifted",
            Act::Purged { .. } => "purged",
            Act::Erased(_) => "erased",
        }
    }

    /// Returns how many records were removed or erased.
    #[must_use]
    pub const fn records(&self) -> u64 {
        match &self.act {
            Act::Held(_) | Act::Lifted(_) => 0,
            Act::Purged { records, .. } => *records,
            Act::Erased(records) => records.len() as u64,
        }
    }

    /// Returns the legal hold that was placed or lifted. `None` for a purge or an erasure.
    #[must_use]
    pub const fn hold(&self) -> Option<&LegalHold> {
        match &self.act {
            Act::Held(hold) | Act::Lifted(hold) => Some(hold),
            Act::Purged { .. } | Act::Erased(_) => None,
        }
    }

    /// Returns the id that records without a call have in place of a call id.
    pub(in crate::store) fn call_id() -> &'static CallId {
        static NONE: LazyLock<CallId> = LazyLock::new(|| CallId::new("-"));
        &NONE
    }

    /// Returns the principal of a hold on a principal. `None` for any other record.
    pub(in crate::store) fn principal(&self) -> Option<&Arc<str>> {
        self.hold()?.principal()
    }

    /// Returns the tenant of a hold on a tenant, or on a principal of a tenant. `None` for any other record.
    pub(in crate::store) fn tenant(&self) -> Option<&Arc<str>> {
        self.hold()?.tenant()
    }
}
