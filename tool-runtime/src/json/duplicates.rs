//! Finds names that occur twice in an object.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json::Tree;

/// The maximum number of members that are scanned for each new name. In a larger object a hash set finds duplicates,
/// because scans would take quadratic time.
const SCANNED: usize = 32;

/// Whether a member has this name. Returns `false` for many members: [`none_among`] checks them when all are parsed.
#[inline]
pub(super) fn is_taken(members: &[(Cow<'_, str>, Tree<'_>)], name: &str) -> bool {
    members.len() < SCANNED && members.iter().any(|(other, _)| *other == name)
}

/// Whether all members have different names. Few members were already checked while they were parsed.
#[inline]
pub(super) fn none_among(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    members.len() <= SCANNED || all_different(members)
}

fn all_different(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    let mut names = HashSet::with_capacity(members.len());
    members.iter().all(|(name, _)| names.insert(&**name))
}
