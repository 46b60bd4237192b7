//! [`ToolLock`]: the definitions of a catalog as text for version control, and a comparison of two such texts.
//!
//! This module does no IO. The application reads and writes the file.

mod changes;
mod definition;
mod locked;
#[cfg(feature = "mcp-client")]
mod published;
mod report;
mod shape;
mod text;

pub use changes::LockChange;
pub(crate) use changes::LockMark;
pub(crate) use changes::LockVerdict;
#[cfg(feature = "mcp-client")]
pub(crate) use published::compare_published;
pub use report::LockReport;

use std::fmt;

use crate::catalog::ToolCatalog;
use crate::error::ParseError;
use locked::Locked;

/// The version of the document.
const VERSION: u64 = 1;

/// The reviewed definitions of a catalog, in a file that is usually called `tools.lock`.
///
/// The text is JSON with sorted keys and a line for each member, so that version control can merge the changes of two
/// branches to different tools. It is the same on every platform, and has no times and no paths. It does not contain
/// the tools that MCP servers list, because the policy pins their definitions.
///
/// ```
/// use tool_runtime::catalog::ToolLock;
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// /// Lists the open tasks.
/// #[tool(name = "tasks__list", effect = read_only, redact = ["$"])]
/// fn list() -> Result<Vec<String>, ToolError> { Ok(Vec::new()) }
///
/// let catalog = ToolCatalog::builder().tool::<list>().build()?;
/// let (now, text) = (ToolLock::of(&catalog), ToolLock::of(&catalog).to_text());
/// let report = ToolLock::parse(&text)?.compare(&now);
/// assert!(report.is_current(), "{report}");
///
/// let older = text.replace("Lists the open", "Lists all");
/// let report = ToolLock::parse(&older)?.compare(&now);
/// assert_eq!(report.verdict(), "patch");
/// assert!(report.is_visible());
/// for (tool, changes) in report.tools() {
///     assert_eq!((tool, changes[0].pointer.as_str()), ("tasks__list", "/description"));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct ToolLock {
    tools: text::Entries,
}

impl ToolLock {
    /// Returns the lock of a catalog.
    #[must_use]
    pub fn of(catalog: &ToolCatalog) -> Self {
        let own = catalog.entries().filter(|entry| !entry.spec.name.is_discovered());
        Self { tools: own.map(|entry| (entry.spec.name.as_str().to_owned(), Ok(Locked::of(entry)))).collect() }
    }

    /// Reads a lock of any length. An unreadable entry does not affect the others; [`compare`](Self::compare) reports
    /// it.
    ///
    /// # Errors
    /// - `lock_merge`: a line begins with a conflict marker of a merge.
    /// - `lock_malformed`: the text is not JSON.
    /// - `lock_shape`: the JSON is not a lock.
    /// - `lock_version`: the lock has another version than this library reads.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        text::read(text).map(|tools| Self { tools })
    }

    /// Returns the text of the lock, without entries that could not be read.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::write(&self.tools)
    }

    /// Returns the differences from this lock to `now`, which is usually the lock of a current catalog.
    #[must_use]
    pub fn compare(&self, now: &Self) -> LockReport {
        LockReport::of(&self.tools, &now.tools)
    }
}

impl fmt::Debug for ToolLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
