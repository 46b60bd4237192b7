//! [`RunIndex`]: indexes the runs of a store in memory by their due times and lanes, so that a worker's poll reads only
//! due runs.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;

use crate::store::{StoredDocument, lane};

/// The positions of runs that have a due time.
#[derive(Default)]
pub(super) struct RunIndex {
    by_due: BTreeSet<(Timestamp, u64)>,
    by_lane: BTreeSet<(Arc<str>, Timestamp, u64)>,
}

impl RunIndex {
    pub(super) fn add(&mut self, position: u64, document: &StoredDocument) {
        if let (Some(lane), Some(due)) = (document.lane(), document.due()) {
            self.by_due.insert((due, position));
            self.by_lane.insert((lane, due, position));
        }
    }

    pub(super) fn remove(&mut self, position: u64, document: &StoredDocument) {
        if let (Some(lane), Some(due)) = (document.lane(), document.due()) {
            self.by_due.remove(&(due, position));
            self.by_lane.remove(&(lane, due, position));
        }
    }

    /// Returns the positions of the runs that have a due time. `tenant` selects the runs of one tenant.
    pub(super) fn all(&self, tenant: Option<&str>) -> impl Iterator<Item = u64> {
        let first = tenant.map(|tenant| (format!("{tenant}/").into(), Timestamp::MIN, 0));
        let runs = self.by_lane.range((first.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded));
        let is_theirs = move |lane: &str| tenant.is_none_or(|tenant| lane::tenant_of(lane) == tenant);
        runs.take_while(move |(lane, ..)| is_theirs(lane)).map(|(_, _, position)| *position)
    }

    /// Returns the positions of the runs that are due, in the order of their due times.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = u64> {
        self.by_due.range(..=(now, u64::MAX)).map(|(_, position)| *position)
    }

    /// Returns the positions of the runs of a lane that are due, in the order of their due times.
    pub(super) fn due_in(&self, lane: &str, now: Timestamp) -> impl Iterator<Item = u64> {
        let lane: Arc<str> = lane.into();
        let range = (Arc::clone(&lane), Timestamp::MIN, 0)..=(lane, now, u64::MAX);
        self.by_lane.range(range).map(|(_, _, position)| *position)
    }

    /// Returns the position of the run that is due first in each lane after `after`, without lanes that have no due
    /// run.
    pub(super) fn lanes(&self, now: Timestamp, after: &str) -> impl Iterator<Item = u64> {
        let next = |after: &Arc<str>| {
            let last = (Arc::clone(after), Timestamp::MAX, u64::MAX);
            self.by_lane.range((Bound::Excluded(last), Bound::Unbounded)).next()
        };
        let lanes = std::iter::successors(next(&after.into()), move |(lane, ..)| next(lane));
        lanes.filter(move |(_, due, _)| *due <= now).map(|(_, _, position)| *position)
    }
}
