//! [`CatalogView`]: the tools that the model of one run may see.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::catalog::{Entry, guidance};
use crate::json::{self, canonical};
use crate::tool::{Execution, Hash, ToolSpec};

/// The tools that the model of one run may see. [`Run::catalog`](crate::Run::catalog) returns it.
///
/// Runs that may see the same tools can share one view. Its hash and its guidance are computed once.
///
/// ```
/// use tool_runtime::registration::DynamicTool;
/// use tool_runtime::{RunOptions, ToolCatalog, ToolError, ToolPolicy, ToolRunner, tool};
///
/// # /// Rolls a die.
/// # #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// # fn roll() -> Result<u32, ToolError> { Ok(4) }
/// let catalog = ToolCatalog::builder().tool::<roll>().dynamic(DynamicTool::search_tools()).build()?;
/// let runner = ToolRunner::builder(catalog, ToolPolicy::allow(["games__roll"])).build()?;
/// let run = runner.run(RunOptions::new());
/// // The policy does not name the other tool.
/// let names: Vec<_> = run.catalog().specs().map(|spec| spec.name.as_str()).collect();
/// assert_eq!(names, ["games__roll"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CatalogView {
    id: u64,
    entries: Vec<Arc<Entry>>,
    /// Whether the entries are sorted by name. Otherwise they are in the order in which the model was offered them.
    sorted: bool,
    hash: OnceLock<Hash>,
    guidance: OnceLock<Box<str>>,
    /// The view without the search tool, `tools__search`.
    loaded: OnceLock<Arc<Self>>,
}

impl CatalogView {
    pub(super) fn new(entries: Vec<Arc<Entry>>) -> Self {
        Self::of(entries, true)
    }

    fn of(entries: Vec<Arc<Entry>>, sorted: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, entries, sorted, hash: OnceLock::new(), guidance: OnceLock::new(), loaded: OnceLock::new() }
    }

    /// Returns an id that is unique in the process, a key for caches of data derived from this view.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the definition of a tool. `None` if the tool is not visible.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entry(name).map(|entry| &*entry.spec)
    }

    /// Whether a UI may show the arguments of a tool while the model writes them. `false` for a tool that is not
    /// visible, that has sensitive arguments, or whose client gets a prepared payload instead.
    #[must_use]
    pub fn may_show_arguments(&self, name: &str) -> bool {
        let open = |entry: &Entry| entry.spec.sensitive.is_empty() && entry.spec.execution != Execution::Client;
        self.entry(name).is_some_and(|entry| open(entry))
    }

    fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        if !self.sorted {
            return self.entries.iter().find(|entry| entry.spec.name.as_str() == name);
        }
        let at = self.entries.binary_search_by(|entry| entry.spec.name.as_str().cmp(name)).ok()?;
        self.entries.get(at)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// Whether another view has the same tools in the same order.
    pub(crate) fn has_tools_of(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.entries.iter(), other.entries.iter());
        self.len() == other.len() && mine.zip(theirs).all(|(mine, theirs)| Arc::ptr_eq(mine, theirs))
    }

    /// Returns the named tools that are visible, in the given order.
    pub(crate) fn only<'n>(&self, names: impl Iterator<Item = &'n str>) -> Self {
        Self::of(names.filter_map(|name| self.entry(name).cloned()).collect(), false)
    }

    /// Returns the view without the search tool; `None` if the view does not have it.
    pub(crate) fn without(&self, search: &'static str) -> Option<&Arc<Self>> {
        self.entry(search)?;
        let others = || self.entries.iter().filter(|entry| entry.spec.name.as_str() != search).cloned().collect();
        Some(self.loaded.get_or_init(|| Arc::new(Self::of(others(), self.sorted))))
    }

    /// Returns the visible definitions, sorted by name or in the order in which the model was offered them.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.iter().map(|entry| &*entry.spec)
    }

    /// Returns the number of visible tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no tool is visible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the rules for the system prompt, rendered from the visible definitions. Empty if no tool is visible.
    #[must_use]
    pub fn guidance(&self) -> String {
        self.rules().to_owned()
    }

    /// Returns the text of [`guidance`](Self::guidance), which is rendered once.
    pub(crate) fn rules(&self) -> &str {
        self.guidance.get_or_init(|| guidance::render(self.specs()).into())
    }

    /// Returns the `catalog_hash`: SHA-256 of the canonical JSON (RFC 8785) of an object with the definition hash of
    /// each visible tool under its name. Views of the same definitions have equal hashes, in any order.
    #[must_use]
    pub fn hash(&self) -> Hash {
        *self.hash.get_or_init(|| {
            let hash = |spec: &ToolSpec| (spec.name.to_string(), Value::from(spec.definition_hash.to_string()));
            json::digest(canonical::rfc8785(&self.specs().map(hash).collect::<Value>()))
        })
    }
}

impl fmt::Debug for CatalogView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs().map(|spec| &spec.name)).finish()
    }
}
