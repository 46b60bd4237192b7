//! The lanes of runs: one for each tenant and version.

use std::sync::Arc;

use crate::store::key::Key;
use crate::tool::Hash;

/// The length of the part of a lane that names a version, in characters.
const PART: usize = 32;

/// Returns the lane of a tenant's runs of a version: the tenant's part comes first, so that its lanes are neighbours.
pub(super) fn lane(slots: &Key, version: Option<Hash>) -> Arc<str> {
    format!("{}/{}", slots.scope(), version.map(part_of).unwrap_or_default()).into()
}

/// Returns the tenant's part of a lane.
pub(crate) fn tenant_of(lane: &str) -> &str {
    lane.split_once('/').map_or(lane, |(tenant, _)| tenant)
}

/// Returns the part of a lane that names a version.
pub(super) fn part_of(version: Hash) -> String {
    let mut part = version.to_string();
    part.truncate(PART);
    part
}
