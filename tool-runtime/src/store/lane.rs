//! The lane of a run: a short text by which workers take the runs of different tenants in turn. It contains the tenant
//! (without a tenant, the principal) and the version. Only this file knows its format.

use std::sync::Arc;

use crate::store::key::Key;
use crate::tool::Hash;

/// The number of hexadecimal digits of a version in a lane.
const VERSION_DIGITS: usize = 32;

/// Returns the lane of the runs of a tenant and a version. `slots` is the key of the tenant's slots; its scope is a
/// digest without `/`. The tenant comes first, so that sorting puts the lanes of one tenant next to each other.
pub(super) fn lane(slots: &Key, version: Option<Hash>) -> Arc<str> {
    format!("{}/{}", slots.scope(), version.map(version_part).unwrap_or_default()).into()
}

/// Returns the tenant's part of a lane.
pub(crate) fn tenant_of(lane: &str) -> &str {
    lane.split_once('/').map_or(lane, |(tenant, _)| tenant)
}

/// Whether the runs of a lane have this version, or none.
pub(super) fn fits_version(lane: &str, version: Hash) -> bool {
    let part = lane.split_once('/').map_or("", |(_, part)| part);
    part.is_empty() || part == version_part(version)
}

/// Returns a version as its part of a lane.
fn version_part(version: Hash) -> String {
    let mut part = version.to_string();
    part.truncate(VERSION_DIGITS);
    part
}
