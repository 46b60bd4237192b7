//! [`Trust`]: checks the signed records of purges and erasures.

use std::collections::BTreeSet;

use crate::call::DigestKey;
use crate::store::chain::Broken;
use crate::store::retention_record::{Act, RetentionRecord, Signed};

/// The keys for signatures of removals.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Trust {
    /// The key to compare them with.
    pub(crate) key: Option<DigestKey>,
    /// The ids of keys that are not here and whose signatures count without a comparison.
    pub(crate) accepted: BTreeSet<String>,
}

/// The result of the check of a record.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) broken: Option<Broken>,
    /// How many erased records it lists.
    pub(super) erased: u64,
    /// The id of its key, if that is not here.
    pub(super) unchecked: Option<String>,
}

impl Trust {
    /// Checks the signature of a record, and strikes the erased records that it lists.
    pub(super) fn check(&self, erased: &mut BTreeSet<u64>, record: &RetentionRecord) -> Checked {
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
            let struck = listed.iter().filter(|place| erased.remove(place)).count();
            // The record is a finding itself, so each that it lists need not be one, too.
            checked.erased = if checked.broken.is_none() { struck as u64 } else { 0 };
        }
        checked
    }
}
