//! [`ServerTools`]: a server of a catalog, with the place for its tools if it had not listed them when the catalog was built.
//!
//! The first read of the catalog after the server's first list fills the place, once.

use std::sync::{Arc, OnceLock};

use crate::catalog::Entry;
use crate::registration::ToolServer;

/// A server as a source hands it to a catalog, and whether it hands over the server's tools, too.
pub(crate) type Gathered = (Arc<dyn ToolServer>, bool);

/// The tools of one server.
pub(crate) struct ServerTools {
    /// The position among the servers of the catalog.
    place: usize,
    server: Arc<dyn ToolServer>,
    /// Whether the catalog was built with its tools.
    #[cfg_attr(not(feature = "mcp-client"), expect(dead_code, reason = "only a source of servers extends a catalog"))]
    was_listed: bool,
    /// The tools that came later, by name.
    listed: OnceLock<Vec<Arc<Entry>>>,
}

impl ServerTools {
    pub(super) fn new(place: usize, (server, is_listed): &Gathered) -> Self {
        let listed = if *is_listed { OnceLock::from(Vec::new()) } else { OnceLock::new() };
        Self { place, server: Arc::clone(server), listed, was_listed: *is_listed }
    }

    /// Returns the server as the source passed it.
    #[cfg(feature = "mcp-client")]
    pub(super) fn gathered(&self) -> Gathered {
        (Arc::clone(&self.server), self.was_listed)
    }

    pub(crate) fn server(&self) -> &Arc<dyn ToolServer> {
        &self.server
    }

    /// The tools that came later, by name; `None` until the server listed them.
    pub(crate) fn entries(&self) -> Option<&[Arc<Entry>]> {
        if let Some(listed) = self.listed.get() {
            return Some(listed);
        }
        let tools = self.server.tools()?;
        let listed = self.listed.get_or_init(|| {
            let mut problems = Vec::new();
            let mut entries: Vec<_> =
                tools.into_iter().filter_map(|tool| Entry::new(tool.describe(), &mut problems)).collect();
            for problem in problems {
                tracing::warn!(problem = %problem.message(), "a tool of a server is left out of the catalog");
            }
            entries.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
            for (at, entry) in entries.iter_mut().enumerate() {
                (entry.index, entry.deferred) = (at, Some(self.place));
            }
            entries.into_iter().map(Arc::new).collect()
        });
        Some(listed)
    }

    /// The tool of this name, if the server listed it.
    pub(super) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        let entries = self.entries().filter(|_| name.starts_with(self.server.prefix()))?;
        entries.get(entries.binary_search_by(|entry| entry.spec.name.as_str().cmp(name)).ok()?)
    }
}
