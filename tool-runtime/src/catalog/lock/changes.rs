//! [`LockChange`]: a difference between two definitions, with a verdict for the users of the tool.

use serde::Serialize;

/// The maximum number of changes of one tool that are kept.
pub(super) const MAX_CHANGES: usize = 100;

/// The verdict on a change by semantic versioning, from the mildest to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockVerdict {
    /// There is no difference.
    Unchanged,
    /// Calls and results work as before.
    Patch,
    /// The tool was added, accepts or shows more than before, has a weaker effect, fewer possible outputs or another
    /// effect key, or became idempotent.
    Minor,
    /// The tool was removed, valid calls are refused or mean something else, shown values are missing or can have other
    /// forms, the effect is stronger, or the change cannot be judged.
    Major,
}

impl LockVerdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// A mark on a change that deserves attention, regardless of its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockMark {
    /// A model, or the person who decides on calls, reads different words than before.
    Visible,
    /// A person must look: the tool can do more, shows more or is protected less, or the change cannot be judged.
    Review,
}

/// One difference between two definitions.
///
/// [`ToolLock`](crate::catalog::ToolLock) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockChange {
    /// JSON Pointer (RFC 6901) into the definition, as if references were inlined. The empty string is the whole tool.
    pub pointer: String,
    pub(crate) verdict: LockVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<LockMark>,
    /// The difference, before and after; at most a few hundred characters.
    pub message: String,
}

impl LockChange {
    pub(super) fn new(
        pointer: impl Into<String>,
        verdict: LockVerdict,
        mark: impl Into<Option<LockMark>>,
        message: impl Into<String>,
    ) -> Self {
        Self { pointer: pointer.into(), verdict, mark: mark.into(), message: message.into() }
    }

    /// Returns the verdict by semantic versioning: `patch` if calls and results work as before; `minor` if the tool was
    /// added, accepts or shows more than before, has a weaker effect, fewer possible outputs or another effect key, or
    /// became idempotent; or `major` if the tool was removed, valid calls are refused or mean something else, shown
    /// values are missing or can have other forms, the effect is stronger, or the change cannot be judged.
    #[must_use]
    pub const fn verdict(&self) -> &'static str {
        self.verdict.as_str()
    }

    /// Whether a model, or the person who decides on calls, reads different words than before.
    #[must_use]
    pub const fn is_visible(&self) -> bool {
        matches!(self.mark, Some(LockMark::Visible))
    }

    /// Whether a person must review the change, regardless of the verdict: the tool can do more, shows more or is
    /// protected less, or the change cannot be judged.
    #[must_use]
    pub const fn needs_review(&self) -> bool {
        matches!(self.mark, Some(LockMark::Review))
    }
}

/// All differences of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ToolChanges {
    /// The name of the tool.
    pub(crate) name: String,
    pub(crate) verdict: LockVerdict,
    /// Whether some change [is visible](LockChange::is_visible).
    pub(crate) visible: bool,
    /// Whether some change [needs a review](LockChange::needs_review).
    pub(crate) review: bool,
    /// The changes, the most severe first; at most 100.
    pub(crate) changes: Vec<LockChange>,
}

impl ToolChanges {
    pub(super) fn new(name: impl Into<String>, mut changes: Vec<LockChange>) -> Self {
        changes.sort_by(|one, other| (other.verdict, &one.pointer).cmp(&(one.verdict, &other.pointer)));
        let has = |mark| changes.iter().any(|change: &LockChange| change.mark == Some(mark));
        let (visible, review) = (has(LockMark::Visible), has(LockMark::Review));
        let verdict = changes.first().map_or(LockVerdict::Unchanged, |change| change.verdict);
        let more = changes.len().saturating_sub(MAX_CHANGES);
        if more > 0 {
            changes.truncate(MAX_CHANGES - 1);
            let message = format!("{} more changes are not listed", more + 1);
            changes.push(LockChange::new("", LockVerdict::Patch, LockMark::Review, message));
        }
        Self { name: name.into(), verdict, visible, review, changes }
    }
}
