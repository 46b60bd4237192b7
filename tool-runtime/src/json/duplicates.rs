//! Names that occur twice in an object.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json::Tree;

/// From this many members on, duplicates are looked for in a hash set, once: a scan for each would be quadratic.
const SCANNED: usize = 32;

/// Whether one of a few members has the name. Those of many are looked at [once](none_among) they are all there.
#[inline]
pub(super) fn is_taken(members: &[(Cow<'_, str>, Tree<'_>)], name: &str) -> bool {
    members.len() < SCANNED && members.iter().any(|(other, _)| *other == name)
}

/// Whether all of many members have different names. Those of few were looked at when they came.
#[inline]
pub(super) fn none_among(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    members.len() <= SCANNED || all_different(members)
}

fn all_different(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    let mut names = HashSet::with_capacity(members.len());
    members.iter().all(|(name, _)| names.insert(&**name))
}
