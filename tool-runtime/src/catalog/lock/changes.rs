//! What a change of a definition means for those who rely on it.

use serde::Serialize;

/// The most changes of one tool that are kept.
pub(super) const MOST: usize = 100;

/// What a change is by semantic versioning. The order is that of gravity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LockVerdict {
    /// There is no difference.
    Unchanged,
    /// What was called and read before is called and read as before.
    Patch,
    /// The tool takes or shows more than before.
    Minor,
    /// Calls that were right are refused or mean something else, or what was shown is missing.
    Major,
}

impl LockVerdict {
    /// Returns the word in reports: `unchanged`, `patch`, `minor` or `major`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// Who should look at a change, whatever its verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LockMark {
    /// A model, or the person who decides on calls, reads other words than before.
    Visible,
    /// The tool reaches further, shows more or is protected less, or nobody can tell: a person has to look.
    Review,
}

/// One difference between two definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LockChange {
    /// JSON Pointer (RFC 6901) into the definition, references followed as if inlined; the empty text is the whole tool.
    pub pointer: String,
    /// What the difference is by semantic versioning.
    pub verdict: LockVerdict,
    /// Who should look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<LockMark>,
    /// What is different, before and after; at most a few hundred characters.
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
}

/// All differences of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolChanges {
    /// The name of the tool.
    pub name: String,
    /// The gravest verdict of all changes.
    pub verdict: LockVerdict,
    /// Whether some change is marked [`LockMark::Visible`].
    pub visible: bool,
    /// Whether some change is marked [`LockMark::Review`].
    pub review: bool,
    /// The changes, the gravest first; at most 100.
    pub changes: Vec<LockChange>,
}

impl ToolChanges {
    pub(super) fn new(name: impl Into<String>, mut changes: Vec<LockChange>) -> Self {
        changes.sort_by(|one, other| (other.verdict, &one.pointer).cmp(&(one.verdict, &other.pointer)));
        let has = |mark| changes.iter().any(|change: &LockChange| change.mark == Some(mark));
        let (visible, review) = (has(LockMark::Visible), has(LockMark::Review));
        let verdict = changes.first().map_or(LockVerdict::Unchanged, |change| change.verdict);
        let more = changes.len().saturating_sub(MOST);
        if more > 0 {
            changes.truncate(MOST - 1);
            let message = format!("{} more changes are not listed", more + 1);
            changes.push(LockChange::new("", LockVerdict::Patch, LockMark::Review, message));
        }
        Self { name: name.into(), verdict, visible, review, changes }
    }
}
