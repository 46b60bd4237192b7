//! [`Finding`]: a defect of a chain or an anchor.

use std::fmt;
use std::sync::Arc;

use crate::store::chain::Broken;

/// A defect of a record, a chain or an anchor. [`Verification::findings`](crate::store::Verification) lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(Wrong);

/// The kinds of findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A record of a run is broken.
    Record { run_id: Arc<str>, sequence: u64, broken: Broken },
    /// The record at this place differs from the anchored one.
    NotAnchored { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// The records from this place up to an anchored one are gone.
    Cut { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// An anchor is broken.
    Anchor { number: u64, wrong: &'static str },
}

impl From<Wrong> for Finding {
    fn from(wrong: Wrong) -> Self {
        Self(wrong)
    }
}

impl Finding {
    /// Returns the run of the record and its place in the chain of the run; `None` for a finding about an anchor.
    #[must_use]
    pub fn record(&self) -> Option<(&str, u64)> {
        match &self.0 {
            Wrong::Record { run_id, sequence, .. }
            | Wrong::NotAnchored { run_id, sequence, .. }
            | Wrong::Cut { run_id, sequence, .. } => Some((run_id, *sequence)),
            Wrong::Anchor { .. } => None,
        }
    }

    /// Returns the number of the anchor that shows the defect; `None` if the chain alone shows it.
    #[must_use]
    pub const fn anchor(&self) -> Option<u64> {
        match &self.0 {
            Wrong::Record { .. } => None,
            Wrong::NotAnchored { anchor, .. } | Wrong::Cut { anchor, .. } => Some(*anchor),
            Wrong::Anchor { number, .. } => Some(*number),
        }
    }

    /// Returns a stable code for each kind: `records_missing`, `record_repeated`, `record_unlinked`, `record_changed`,
    /// `record_misfiled`, `record_unreadable`, `record_not_anchored`, `records_cut` or `anchor_broken`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match &self.0 {
            Wrong::Record { broken: Broken::Missing(_), .. } => "records_missing",
            Wrong::Record { broken: Broken::Repeated, .. } => "record_repeated",
            Wrong::Record { broken: Broken::Unlinked, .. } => "record_unlinked",
            Wrong::Record { broken: Broken::Changed, .. } => "record_changed",
            Wrong::Record { broken: Broken::Misfiled, .. } => "record_misfiled",
            Wrong::Record { broken: Broken::Unreadable, .. } => "record_unreadable",
            Wrong::NotAnchored { .. } => "record_not_anchored",
            Wrong::Cut { .. } => "records_cut",
            Wrong::Anchor { .. } => "anchor_broken",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Wrong::Record { run_id, sequence, broken } => {
                write!(f, "run {run_id:?}, record {sequence}: {broken}")
            }
            Wrong::NotAnchored { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: it is not the one that anchor {anchor} holds: ")?;
                f.write_str("the chain was sealed anew")
            }
            Wrong::Cut { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: it is missing, and what anchor {anchor} holds: ")?;
                f.write_str("the end of the chain was removed, or lost")
            }
            Wrong::Anchor { number, wrong } => write!(f, "anchor {number}: {wrong}"),
        }
    }
}
