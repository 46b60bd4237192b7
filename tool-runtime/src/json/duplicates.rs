//! Names that occur twice in an object.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json::Tree;

/// From this many members on, duplicates are found with a hash set, once: a scan for each member would be quadratic.
const SCANNED: usize = 32;

/// Whether one of a few members has the name. Many members are checked [together](none_among), when all were read.
#[inline]
pub(super) fn is_taken(members: &[(Cow<'_, str>, Tree<'_>)], name: &str) -> bool {
    members.len() < SCANNED && members.iter().any(|(other, _)| *other == name)
}

/// Whether all of many members have different names. Few members were checked one by one while they were read.
#[inline]
pub(super) fn none_among(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    members.len() <= SCANNED || all_different(members)
}

fn all_different(members: &[(Cow<'_, str>, Tree<'_>)]) -> bool {
    let mut names = HashSet::with_capacity(members.len());
    members.iter().all(|(name, _)| names.insert(&**name))
}
