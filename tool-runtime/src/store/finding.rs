//! [`Finding`]: what is wrong with chains and anchors.

use std::fmt;
use std::sync::Arc;

use crate::store::chain::Broken;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A record of a run.
    Record { run_id: Arc<str>, sequence: u64, broken: Broken },
    /// The record in this place is not the anchored one.
    NotAnchored { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// The record in this place is gone, the first of those that are, up to one that the anchor holds.
    Cut { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// An anchor, with what is wrong with it.
    Anchor { number: u64, wrong: &'static str },
}

impl Finding {
    /// The run and the place, if it is about a record.
    pub(crate) fn record(&self) -> Option<(&str, u64)> {
        match self {
            Self::Record { run_id, sequence, .. }
            | Self::NotAnchored { run_id, sequence, .. }
            | Self::Cut { run_id, sequence, .. } => Some((run_id, *sequence)),
            Self::Anchor { .. } => None,
        }
    }

    /// The anchor that it was found through.
    #[cfg(feature = "cli")]
    pub(crate) const fn anchor(&self) -> Option<u64> {
        match self {
            Self::Record { .. } => None,
            Self::NotAnchored { anchor, .. } | Self::Cut { anchor, .. } => Some(*anchor),
            Self::Anchor { number, .. } => Some(*number),
        }
    }

    /// A stable word for each case.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Record { broken: Broken::Missing(_), .. } => "records_missing",
            Self::Record { broken: Broken::Repeated, .. } => "record_repeated",
            Self::Record { broken: Broken::Unlinked, .. } => "record_unlinked",
            Self::Record { broken: Broken::Changed, .. } => "record_changed",
            Self::Record { broken: Broken::Misfiled, .. } => "record_misfiled",
            Self::Record { broken: Broken::Unreadable, .. } => "record_unreadable",
            Self::NotAnchored { .. } => "record_not_anchored",
            Self::Cut { .. } => "records_cut",
            Self::Anchor { .. } => "anchor_broken",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { run_id, sequence, broken } => {
                write!(f, "run {run_id:?}, record {sequence}: {broken}")
            }
            Self::NotAnchored { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: it is not the one that anchor {anchor} holds: ")?;
                f.write_str("the chain was sealed anew")
            }
            Self::Cut { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: it is missing, and what anchor {anchor} holds: ")?;
                f.write_str("the end of the chain was removed, or lost")
            }
            Self::Anchor { number, wrong } => write!(f, "anchor {number}: {wrong}"),
        }
    }
}
