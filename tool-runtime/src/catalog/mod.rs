//! The catalog: every tool of an application, checked as a whole. The only place that iterates registrations.

mod build;
mod compiled;
mod entry;
mod graph;
mod guidance;
mod lock;
pub(crate) mod pick;
mod problem;
mod view;

pub use build::CatalogBuilder;
#[cfg(any(feature = "cli", feature = "mcp-client"))]
pub(crate) use build::look_alike;
pub(crate) use compiled::CompiledCatalog;
pub use compiled::ValidatorMode;
pub(crate) use entry::Entry;
#[cfg(feature = "mcp-client")]
pub(crate) use lock::compare_published;
pub use lock::{LockChange, LockError, LockMark, LockReport, LockVerdict, ToolChanges, ToolLock};
pub use pick::{Pick, PickField, PickOptions, PickReason, Scorer};
pub use problem::{CatalogError, CatalogProblem, CatalogProblemKind};
pub use view::CatalogView;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::capability::Source;

use crate::policy::RunTools;
use crate::text::Keyed;
use crate::tool::{ToolName, ToolSpec};

/// All tools of an application, sorted by name. Two tools of one name are an error, never a silent replacement.
pub struct ToolCatalog {
    /// Sorted by name.
    entries: Vec<Arc<Entry>>,
    /// Keyed, because servers name the tools that are discovered.
    index: HashMap<ToolName, usize, Keyed>,
    /// Some argument of some tool must have been seen in the run.
    pub(crate) asks_evidence: bool,
    /// The kinds of connections that its tools borrow.
    pub(crate) connections: BTreeSet<&'static str>,
    /// One counter for each server that can change tools of the catalog.
    servers: Vec<Arc<AtomicU64>>,
    /// Made by the first pick. A tool's slot is its place in the catalog.
    words: OnceLock<pick::Index>,
}

impl ToolCatalog {
    /// Collects every linked registration.
    ///
    /// # Errors
    /// All problems of all tools together. An empty catalog is a problem too: a crate of tools is linked only if
    /// it is used, for which `use my_tools as _;` is enough.
    pub fn collect() -> Result<Self, CatalogError> {
        Self::builder().collect().build()
    }

    /// Returns a builder for a catalog of chosen tools.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder::default()
    }

    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        entries.iter_mut().enumerate().for_each(|(at, entry)| entry.index = at);
        let mut entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        // Collected in the place of what is fifty times larger.
        entries.shrink_to_fit();
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.spec.name.clone(), at)).collect();
        let asks_evidence = entries.iter().any(|entry| !entry.spec.evidence.is_empty());
        let borrowed = entries.iter().flat_map(|entry| &entry.requirements);
        let connections = borrowed.filter_map(|requirement| match requirement.source {
            Source::Connection(kind) => Some(kind),
            Source::Capability | Source::Context => None,
        });
        let connections = connections.collect();
        let servers = entries.iter().filter_map(|entry| entry.published.as_ref().map(|server| server.changes()));
        let servers: HashMap<_, _> = servers.map(|server| (Arc::as_ptr(server), Arc::clone(server))).collect();
        let servers = servers.into_values().collect();
        Self { entries, index, asks_evidence, connections, servers, words: OnceLock::new() }
    }

    /// How often servers have changed anything that their tools are. Asked before the tools are looked at, an equal count
    /// later says that they are still the same.
    pub(crate) fn changes(&self) -> u64 {
        self.servers.iter().fold(0, |sum, server| sum.wrapping_add(server.load(Ordering::Acquire)))
    }

    /// Whether it has tools of servers, of which what may be seen changes.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn may_change(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Returns the definition of a tool; `None` if the catalog has no tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entry(name).map(|entry| &*entry.spec)
    }

    /// Returns all definitions, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.iter().map(|entry| &*entry.spec)
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All tools with where they come from, by name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// Returns rules for the system prompt, rendered from the definitions.
    #[must_use]
    pub fn guidance(&self) -> String {
        guidance::render(self.specs())
    }

    /// Picks the tools whose definitions fit a query best: at first those that are always picked, then the best of the
    /// others. The same catalog, query and options give the same picks on every platform.
    ///
    /// Names, descriptions and arguments are compared word by word, without case, accents and endings. The first call
    /// reads all definitions; later ones take well under a millisecond for thousands of tools.
    ///
    /// ```
    /// use tool_runtime::catalog::PickOptions;
    /// use tool_runtime::{ToolCatalog, ToolError, tool};
    ///
    /// /// Lists the open tasks.
    /// #[tool(name = "tasks__list", effect = read_only, redact = ["$"])]
    /// fn list() -> Result<Vec<String>, ToolError> { Ok(Vec::new()) }
    ///
    /// /// Converts an amount of money.
    /// #[tool(name = "money__convert", effect = read_only, redact = ["$"])]
    /// fn convert() -> Result<f64, ToolError> { Ok(0.0) }
    ///
    /// let catalog = ToolCatalog::builder().tool::<list>().tool::<convert>().build()?;
    /// let picks = catalog.pick("Which tasks are still open?", &PickOptions::new(1));
    /// assert_eq!(picks[0].name.as_str(), "tasks__list");
    /// assert!(picks[0].reasons.iter().any(|reason| reason.word == "tasks"));
    /// # Ok::<(), tool_runtime::catalog::CatalogError>(())
    /// ```
    #[must_use]
    pub fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        self.words().pick(query, options, &|_| true)
    }

    pub(crate) fn words(&self) -> &pick::Index {
        self.words.get_or_init(|| {
            let mut words = pick::Index::default();
            for entry in &self.entries {
                words.insert(&entry.spec);
            }
            words
        })
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(*self.index.get(name)?)
    }

    /// Those of the named tools that `visible` lets through, or of all tools. With names, no other tool is looked at.
    pub(crate) fn view(&self, named: Option<&RunTools>, visible: impl Fn(&Entry) -> bool) -> CatalogView {
        let visible = |entry: &&Arc<Entry>| visible(entry);
        CatalogView::new(match named {
            // Sorted as the catalog is.
            Some(named) => {
                named.names().into_iter().filter_map(|name| self.entry(name)).filter(visible).cloned().collect()
            }
            None => self.entries.iter().filter(visible).cloned().collect(),
        })
    }
}

impl fmt::Debug for ToolCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs().map(|spec| &spec.name)).finish()
    }
}
