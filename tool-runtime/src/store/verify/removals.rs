//! [`Trust`]: checks the signed records of purges and erasures.

use std::collections::BTreeSet;

use crate::call::DigestKey;
use crate::store::chain::Broken;
use crate::store::retention_record::{Act, RetentionRecord, Signed};

/// The keys with which signatures of removals are checked.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Trust {
    /// The key that checks the signatures.
    pub(crate) key: Option<DigestKey>,
    /// The ids of absent keys whose signatures are accepted without a check.
    pub(crate) accepted: BTreeSet<String>,
}

/// The places of the erased records of a run.
#[derive(Default)]
pub(super) struct ErasedPlaces {
    /// Erased records that no signed record has listed yet.
    pub(super) unlisted: BTreeSet<u64>,
    /// Records that a signed record lists, but that still have values.
    pub(super) undone: BTreeSet<u64>,
    /// Erased records that a signed record listed. Two concurrent erasures can list the same places.
    pub(super) listed: BTreeSet<u64>,
    /// All records from this place on were read, and are unchanged.
    pub(super) from: u64,
}

impl ErasedPlaces {
    /// Notes that a record lists a place. Returns whether the record there is erased and was not listed before.
    fn list(&mut self, place: u64, is_signed: bool) -> bool {
        let is_erased = self.unlisted.remove(&place);
        if is_erased {
            self.listed.insert(place);
        } else if is_signed && place >= self.from && !self.listed.contains(&place) {
            self.undone.insert(place);
        }
        is_erased
    }
}

/// The result of the check of a record.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) broken: Option<Broken>,
    /// How many erased records the record lists.
    pub(super) erased: u64,
    /// The id of the key that signed the record, if this key is absent.
    pub(super) unchecked: Option<String>,
}

impl Trust {
    /// Checks the signature of a record, and marks the erased records that it lists as listed.
    pub(super) fn check(&self, erased: &mut ErasedPlaces, record: &RetentionRecord) -> Checked {
        let mut checked = Checked::default();
        match record.check(self.key.as_ref()) {
            Signed::Forged => {
                checked.broken = Some(Broken::Forged);
                return checked;
            }
            Signed::Unchecked => {
                checked.unchecked = record.key_id();
                let is_accepted = checked.unchecked.as_ref().is_some_and(|id| self.accepted.contains(id));
                checked.broken = (!is_accepted).then_some(Broken::Unchecked);
            }
            Signed::Fits => {}
        }
        if let Act::Erased(listed) = &record.act {
            // The record is a finding itself if its signature is not accepted, so the records that it lists need no
            // findings of their own.
            let is_signed = checked.broken.is_none();
            let struck = listed.iter().filter(|place| erased.list(**place, is_signed)).count();
            checked.erased = if is_signed { struck as u64 } else { 0 };
        }
        checked
    }
}
