//! [`ServerTools`]: one MCP server of a catalog, and the tools that it listed after the catalog was built.
//!
//! The catalog reads the tools once, at its first access after the server's first list. Later lists change nothing
//! here.

use std::sync::{Arc, OnceLock};

use crate::catalog::Entry;
use crate::registration::ToolServer;

/// An MCP server of a source (`mcp::source`).
#[derive(Clone)]
pub(crate) struct SourceServer {
    pub(crate) server: Arc<dyn ToolServer>,
    /// Whether the source passed the server's tools, too, so that the catalog is built with them.
    pub(crate) is_listed: bool,
}

/// One MCP server, and the tools that it listed after the catalog was built.
pub(crate) struct ServerTools {
    source: SourceServer,
    /// The position among the servers of the catalog.
    position: usize,
    /// The tools that the server listed later, sorted by name.
    late_tools: OnceLock<Vec<Arc<Entry>>>,
}

impl ServerTools {
    pub(super) fn new(position: usize, source: &SourceServer) -> Self {
        // If the server had listed its tools, the catalog was built with them, so none come late.
        let late_tools = if source.is_listed { OnceLock::from(Vec::new()) } else { OnceLock::new() };
        Self { source: source.clone(), position, late_tools }
    }

    /// Returns the server as the source passed it.
    #[cfg(feature = "mcp-client")]
    pub(super) fn source(&self) -> SourceServer {
        self.source.clone()
    }

    pub(crate) fn server(&self) -> &Arc<dyn ToolServer> {
        &self.source.server
    }

    /// Returns the late tools, sorted by name. `None` before the server's first list; empty if the catalog was built
    /// with its tools.
    pub(crate) fn entries(&self) -> Option<&[Arc<Entry>]> {
        if let Some(late) = self.late_tools.get() {
            return Some(late);
        }
        let tools = self.server().tools()?;
        let late = self.late_tools.get_or_init(|| {
            let mut problems = Vec::new();
            let mut entries: Vec<_> =
                tools.into_iter().filter_map(|tool| Entry::new(tool.describe(), &mut problems)).collect();
            for problem in problems {
                tracing::warn!(problem = %problem.message(), "a tool of a server is left out of the catalog");
            }
            entries.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
            for (at, entry) in entries.iter_mut().enumerate() {
                (entry.index, entry.deferred) = (at, Some(self.position));
            }
            entries.into_iter().map(Arc::new).collect()
        });
        Some(late)
    }

    /// Returns the late tool of this name. `None` for a tool that the catalog was built with.
    pub(super) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        let entries = self.entries().filter(|_| name.starts_with(self.server().prefix()))?;
        entries.get(entries.binary_search_by(|entry| entry.spec.name.as_str().cmp(name)).ok()?)
    }
}
