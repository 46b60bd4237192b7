//! [`LockReport`]: the differences between two locks (`tools.lock`).

use std::fmt;

use serde::Serialize;

use crate::catalog::lock::changes::ToolChanges;
use crate::catalog::lock::definition;
use crate::catalog::lock::locked::Locked;
use crate::catalog::lock::text::Entries;
use crate::catalog::lock::{LockChange, LockMark, LockVerdict};
use crate::text::plain;

/// The number of lines after which a report as text lists no further tool.
const MAX_LINES: usize = 1_000;

/// The differences between two locks: the tools that changed, by name.
///
/// As text, it has a line for each tool and a line for each change. After 1,000 lines it lists no further tool, and
/// ends with the number of the remaining ones.
///
/// [`ToolLock`](crate::catalog::ToolLock) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockReport {
    tools: Vec<ToolChanges>,
}

impl LockReport {
    pub(super) fn of(old: &Entries, new: &Entries) -> Self {
        let mut tools = Vec::new();
        let added: Vec<_> = new.iter().filter(|(name, _)| !old.contains_key(*name)).collect();
        for (name, before) in old {
            let changes = match (before, new.get(name)) {
                (Ok(before), Some(Ok(after))) => definition::compare(before, after),
                (Err(why), Some(_)) | (_, Some(Err(why))) => {
                    let message = format!("its entry cannot be read, so it is not compared: {why}");
                    vec![LockChange::new("", LockVerdict::Major, LockMark::Review, message)]
                }
                (before, None) => {
                    let renamed = added.iter().find(|(_, after)| is_alike(before, after));
                    let hint = renamed.map(|(name, _)| format!("; was it renamed to `{}`?", plain(name, 128)));
                    let message = format!("the tool was removed{}", hint.unwrap_or_default());
                    vec![LockChange::new("", LockVerdict::Major, None, message)]
                }
            };
            if !changes.is_empty() {
                tools.push(ToolChanges::new(plain(name, 128), changes));
            }
        }
        for (name, _) in added {
            let change = LockChange::new("", LockVerdict::Minor, None, "the tool was added");
            tools.push(ToolChanges::new(plain(name, 128), vec![change]));
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Self { tools }
    }

    /// Returns the report of one tool.
    #[cfg(feature = "mcp-client")]
    pub(super) fn of_tool(changes: ToolChanges) -> Self {
        Self { tools: vec![changes] }
    }

    /// Returns the tools that changed, sorted by name, each with its changes: the most severe first, and at most 100.
    #[must_use]
    pub fn tools(&self) -> impl ExactSizeIterator<Item = (&str, &[LockChange])> {
        self.tools.iter().map(|tool| (tool.name.as_str(), tool.changes.as_slice()))
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the most severe [verdict](LockChange::verdict) of all tools; `unchanged` if nothing changed.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        self.tools.iter().map(|tool| tool.verdict).max().unwrap_or(LockVerdict::Unchanged).as_str()
    }

    /// Whether some change [is visible](LockChange::is_visible).
    #[must_use]
    pub fn is_visible(&self) -> bool {
        self.tools.iter().any(|tool| tool.visible)
    }

    /// Whether some change [needs a review](LockChange::needs_review).
    #[must_use]
    pub fn needs_review(&self) -> bool {
        self.tools.iter().any(|tool| tool.review)
    }
}

/// Whether two entries can be the same tool under different names.
fn is_alike(old: &Result<Locked, String>, new: &Result<Locked, String>) -> bool {
    let (Ok(old), Ok(new)) = (old, new) else { return false };
    old.input_schema == new.input_schema && old.output_schema == new.output_schema && old.effect == new.effect
}

impl fmt::Display for ToolChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.verdict.as_str())?;
        if self.review {
            f.write_str(", review")?;
        }
        if self.visible {
            f.write_str(", visible")?;
        }
        for change in &self.changes {
            let mark = match change.mark {
                None => "",
                Some(LockMark::Visible) => " visible",
                Some(LockMark::Review) => " review",
            };
            let gap = if change.pointer.is_empty() { "" } else { " " };
            let verdict = change.verdict.as_str();
            write!(f, "\n  {verdict}{mark}{gap}{}: {}", change.pointer, change.message)?;
        }
        Ok(())
    }
}

impl fmt::Display for LockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = 0;
        for (at, tool) in self.tools.iter().enumerate() {
            if lines >= MAX_LINES {
                return write!(f, "\nand {} more tools", self.tools.len() - at);
            }
            lines += 1 + tool.changes.len();
            write!(f, "{}{tool}", if at > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}
