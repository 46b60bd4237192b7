//! [`Finding`]: a defect in the stored records, anchors or documents.

use std::fmt;
use std::sync::Arc;

use crate::store::chain::Broken;
use crate::store::{Key, StoreError};

/// A defect of a record, a chain, an anchor or a document. [`Verification::findings`](crate::store::Verification) lists
/// them.
///
/// ```
/// use tool_runtime::store::Finding;
///
/// let finding = Finding::unreadable("run-1", 7, None);
/// assert_eq!((finding.code(), finding.record()), ("record_unreadable", Some(("run-1", 7))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub(super) wrong: Wrong,
    /// The position of the record among all records, or of the document among all documents. `None` if it was not read
    /// from a store.
    pub(super) position: Option<u64>,
    /// The index of the record in the slice that [`Chain::verify`](crate::store::Chain::verify) checked.
    at: Option<usize>,
}

/// The kinds of findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A record of a run is broken.
    Record { run_id: Arc<str>, sequence: u64, broken: Broken },
    /// The record at this place differs from the record in the anchor.
    NotAnchored { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// The records from this place up to an anchored record are missing.
    Cut { run_id: Arc<str>, sequence: u64, anchor: u64 },
    /// The run has fewer records than an exported anchor states, or different records.
    Behind { run_id: Arc<str>, sequence: u64, found: u64, held_back: bool },
    /// A document cannot be read.
    Document { kind: &'static str, scope: Arc<str>, id: Arc<str> },
    /// An anchor is broken.
    Anchor { number: u64, wrong: &'static str },
}

impl From<Wrong> for Finding {
    fn from(wrong: Wrong) -> Self {
        Self { wrong, position: None, at: None }
    }
}

impl Finding {
    /// Creates the finding of a record that a store cannot read: its row is incomplete, or its text is not a record.
    #[must_use]
    pub fn unreadable(run_id: &str, sequence: u64, position: Option<u64>) -> Self {
        Self::of(run_id, sequence, Broken::Unreadable, position)
    }

    /// Creates the finding of a record whose index values differ from its contents, because an index was edited.
    #[must_use]
    pub fn misfiled(run_id: &str, sequence: u64, position: Option<u64>) -> Self {
        Self::of(run_id, sequence, Broken::Misfiled, position)
    }

    /// Creates the finding of a document that a store cannot read. With a position, a search can continue after the
    /// document.
    #[must_use]
    pub fn unreadable_document(key: &Key, position: Option<u64>) -> Self {
        let (scope, id) = (Arc::clone(key.scope()), Arc::clone(key.id()));
        let wrong = Wrong::Document { kind: key.kind().code(), scope, id };
        Self { position, ..wrong.into() }
    }

    /// Creates the finding of a broken record.
    pub(super) fn of(run_id: &str, sequence: u64, broken: Broken, position: Option<u64>) -> Self {
        Self { position, ..Wrong::Record { run_id: run_id.into(), sequence, broken }.into() }
    }

    /// Adds the index of the record in the checked slice.
    pub(super) fn at(mut self, index: usize) -> Self {
        self.at = Some(index);
        self
    }

    /// Returns the index of the record, from 0, in the slice that [`Chain::verify`](crate::store::Chain::verify)
    /// checked. `None` for any other finding.
    #[must_use]
    pub const fn index(&self) -> Option<usize> {
        self.at
    }

    /// Returns the run of the record and its place in the chain of the run. `None` for a finding about an anchor or a
    /// document.
    #[must_use]
    pub fn record(&self) -> Option<(&str, u64)> {
        match &self.wrong {
            Wrong::Record { run_id, sequence, .. }
            | Wrong::NotAnchored { run_id, sequence, .. }
            | Wrong::Cut { run_id, sequence, .. }
            | Wrong::Behind { run_id, sequence, .. } => Some((run_id, *sequence)),
            Wrong::Document { .. } | Wrong::Anchor { .. } => None,
        }
    }

    /// Returns the run of the record, or the owner of the document. `None` for a finding about an anchor.
    pub(super) const fn scope(&self) -> Option<&Arc<str>> {
        match &self.wrong {
            Wrong::Record { run_id, .. }
            | Wrong::NotAnchored { run_id, .. }
            | Wrong::Cut { run_id, .. }
            | Wrong::Behind { run_id, .. } => Some(run_id),
            Wrong::Document { scope, .. } => Some(scope),
            Wrong::Anchor { .. } => None,
        }
    }

    /// Returns the finding and its position, if a store could not read a record or a document. Returns any other error
    /// unchanged.
    pub(in crate::store) fn of_error(error: StoreError) -> Result<(Self, u64), StoreError> {
        let StoreError::Corrupt(source) = error else { return Err(error) };
        match source.downcast::<Self>() {
            Ok(wrong) => match wrong.position {
                Some(position) => Ok((*wrong, position)),
                None => Err(StoreError::Corrupt(wrong)),
            },
            Err(source) => Err(StoreError::Corrupt(source)),
        }
    }

    /// Returns the position of the record or the document in its store.
    #[cfg(feature = "http")]
    pub(crate) const fn position(&self) -> Option<u64> {
        self.position
    }

    /// Returns how many records the store has of a run that is behind an exported anchor, and whether
    /// [`hold_back`](trait@crate::store::Store#method.hold_back) held the run back. A run without a stored document,
    /// from which workers would continue it, cannot be held back. `None` for any other finding.
    #[must_use]
    pub const fn behind(&self) -> Option<(u64, bool)> {
        match &self.wrong {
            Wrong::Behind { found, held_back, .. } => Some((*found, *held_back)),
            _ => None,
        }
    }

    /// Returns the number of the defective anchor, or of the anchor that shows the defect of a record. `None` if the
    /// chain alone shows it, for a document, and for a run that is behind an exported anchor.
    #[must_use]
    pub const fn anchor(&self) -> Option<u64> {
        match &self.wrong {
            Wrong::Record { .. } | Wrong::Behind { .. } | Wrong::Document { .. } => None,
            Wrong::NotAnchored { anchor, .. } | Wrong::Cut { anchor, .. } => Some(*anchor),
            Wrong::Anchor { number, .. } => Some(*number),
        }
    }

    /// Returns the stable code of the finding: `records_missing`, `record_repeated`, `record_unlinked`,
    /// `record_changed`, `record_misfiled`, `record_unreadable`, `removal_forged`, `removal_unchecked`,
    /// `erasure_unlisted`, `erasure_undone`, `record_not_anchored`, `records_cut`, `run_behind`, `document_unreadable`
    /// or `anchor_broken`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match &self.wrong {
            Wrong::Record { broken: Broken::Missing(_), .. } => "records_missing",
            Wrong::Record { broken: Broken::Repeated, .. } => "record_repeated",
            Wrong::Record { broken: Broken::Unlinked, .. } => "record_unlinked",
            Wrong::Record { broken: Broken::Changed, .. } => "record_changed",
            Wrong::Record { broken: Broken::Misfiled, .. } => "record_misfiled",
            Wrong::Record { broken: Broken::Unreadable, .. } => "record_unreadable",
            Wrong::Record { broken: Broken::Forged, .. } => "removal_forged",
            Wrong::Record { broken: Broken::Unchecked, .. } => "removal_unchecked",
            Wrong::Record { broken: Broken::Unlisted, .. } => "erasure_unlisted",
            Wrong::Record { broken: Broken::Undone, .. } => "erasure_undone",
            Wrong::NotAnchored { .. } => "record_not_anchored",
            Wrong::Cut { .. } => "records_cut",
            Wrong::Behind { .. } => "run_behind",
            Wrong::Document { .. } => "document_unreadable",
            Wrong::Anchor { .. } => "anchor_broken",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wrong {
            Wrong::Record { run_id, sequence, broken } => {
                write!(f, "run {run_id:?}, record {sequence}: {broken}")
            }
            Wrong::NotAnchored { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: it differs from the record in anchor {anchor}: ")?;
                f.write_str("the chain was sealed again")
            }
            Wrong::Cut { run_id, sequence, anchor } => {
                write!(f, "run {run_id:?}, record {sequence}: missing from here up to anchor {anchor}: ")?;
                f.write_str("the end of the chain was removed, or lost")
            }
            Wrong::Behind { run_id, sequence, .. } => {
                write!(f, "run {run_id:?}, record {sequence}: an exported anchor contains it, but the store does not")
            }
            Wrong::Document { kind, scope, id } => {
                f.write_str("a document (")?;
                f.write_str(kind)?;
                if !id.is_empty() {
                    write!(f, " {id:?}")?;
                }
                write!(f, ") of {scope:?} cannot be read: it is damaged, or a newer library wrote it")
            }
            Wrong::Anchor { number, wrong } => write!(f, "anchor {number}: {wrong}"),
        }
    }
}

impl std::error::Error for Finding {}

impl From<Finding> for StoreError {
    fn from(finding: Finding) -> Self {
        Self::Corrupt(Box::new(finding))
    }
}
