//! [`ToolCatalog`]: all tools of an application.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::capability::InjectedFrom;
use crate::catalog::{CatalogBuilder, CatalogView, Entry, ServerTools, SourceServer, guidance};
#[cfg(feature = "picking")]
use crate::catalog::{CatalogWords, Pick, PickIndex, PickOptions};
use crate::error::{BuildError, Problem};
use crate::policy::{PolicyResource, RunTools, ToolPolicy, Unready};
use crate::registration::{Behaviour, ToolServer};
use crate::tool::{ToolName, ToolSpec, is_discovered};

/// All tools of an application, sorted by name. Two tools with the same name are an error.
///
/// A catalog does not change, with one exception: if an MCP server has not answered yet, its tools are added when it
/// lists them for the first time.
///
/// ```
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// /// Rolls a die.
/// #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// fn roll() -> Result<u32, ToolError> {
///     Ok(4)
/// }
///
/// // `ToolCatalog::collect()` takes the tools of every linked crate instead.
/// let catalog = ToolCatalog::builder().tool::<roll>().build()?;
/// assert_eq!(catalog.get("games__roll").map(|spec| &*spec.description), Some("Rolls a die."));
/// # Ok::<(), tool_runtime::error::BuildError>(())
/// ```
pub struct ToolCatalog {
    /// The tools that the catalog was built with, sorted by name.
    pub(super) entries: Vec<Arc<Entry>>,
    /// The servers of tools, including servers that had no list when the catalog was built.
    pub(super) servers: Vec<Arc<ServerTools>>,
    // All keys are names of the application, so a fast hash without protection against chosen keys is safe.
    pub(super) index: HashMap<ToolName, usize, hashbrown::DefaultHashBuilder>,
    /// Whether some tool has an argument that accepts only evidence (ids that results or the user showed).
    pub(crate) asks_evidence: bool,
    /// The kinds of connections that the tools borrow.
    pub(crate) connections: BTreeSet<&'static str>,
    /// One counter for each server that can change tools of the catalog.
    pub(super) counters: Vec<Arc<AtomicU64>>,
    #[cfg(feature = "picking")]
    pub(super) words: CatalogWords,
}

impl ToolCatalog {
    /// Creates a catalog of all authored tools that are linked into the program.
    ///
    /// # Errors
    /// The error lists all problems of all tools. An empty catalog is a problem, too: the linker drops a crate of tools
    /// that the program does not use. Write `use my_tools as _;` to keep it.
    pub fn collect() -> Result<Self, BuildError> {
        Self::builder().collect().build()
    }

    /// Returns a builder for a catalog of chosen tools.
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder::default()
    }

    pub(super) fn new(mut entries: Vec<Entry>, servers: &[SourceServer]) -> Self {
        entries.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        entries.iter_mut().enumerate().for_each(|(at, entry)| entry.index = at);
        let mut entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        // The vector reuses the memory of the `Entry` items, which are fifty times larger than an `Arc`.
        entries.shrink_to_fit();
        let index = entries.iter().enumerate().map(|(at, entry)| (entry.spec.name.clone(), at)).collect();
        let asks_evidence = entries.iter().any(|entry| !entry.spec.evidence.is_empty());
        let borrowed = entries.iter().flat_map(|entry| &entry.requirements);
        let connections = borrowed.filter_map(|requirement| match requirement.source {
            InjectedFrom::Connection(kind) => Some(kind),
            InjectedFrom::Capability | InjectedFrom::Context => None,
        });
        let connections = connections.chain(servers.iter().filter_map(|source| source.server.connection())).collect();
        let counters = entries.iter().filter_map(|entry| entry.published.as_ref().map(|server| server.changes()));
        let counters = counters.chain(servers.iter().map(|source| source.server.changes()));
        let counters: HashMap<_, _> = counters.map(|one| (Arc::as_ptr(one), Arc::clone(one))).collect();
        let counters = counters.into_values().collect();
        let tools = |(position, source): (usize, &SourceServer)| Arc::new(ServerTools::new(position, source));
        let servers = servers.iter().enumerate().map(tools).collect();
        Self {
            entries,
            servers,
            index,
            asks_evidence,
            connections,
            counters,
            #[cfg(feature = "picking")]
            words: CatalogWords::default(),
        }
    }

    /// Wraps the behaviour of every tool, before the catalog is shared.
    pub(crate) fn wrap(&mut self, around: impl Fn(&str, Arc<dyn Behaviour>) -> Arc<dyn Behaviour>) {
        for entry in self.entries.iter_mut().filter_map(Arc::get_mut) {
            entry.behaviour = around(entry.spec.name.as_str(), Arc::clone(&entry.behaviour));
        }
    }

    /// Returns how often servers have changed their tools. If the number is the same before and after a read of the
    /// tools, they did not change in between.
    pub(crate) fn changes(&self) -> u64 {
        self.counters.iter().fold(0, |sum, one| sum.wrapping_add(one.load(Ordering::Acquire)))
    }

    /// Whether the catalog has tools of servers, whose visibility can change.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn may_change(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Returns the definition of a tool; `None` if the catalog has no tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entry(name).map(|entry| &*entry.spec)
    }

    /// Returns a tool as a policy sees it; `None` if the catalog has no tool of this name. The pin (the hash of the
    /// definition) of an MCP server's tool is missing while its server publishes another definition than the catalog
    /// has.
    #[must_use]
    pub fn policy_resource(&self, name: &str) -> Option<PolicyResource<'_>> {
        self.entry(name).map(|entry| entry.policy_resource())
    }

    /// Whether a tool has a precondition
    /// ([`ToolComponent::precondition`](crate::ToolComponent::precondition)). `false` for an unknown name.
    #[must_use]
    pub fn has_precondition(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.behaviour.states())
    }

    /// Returns the place of an authored tool in its source, as `file:line:column`. `None` for a tool that was made at
    /// run time, and for an unknown name.
    #[must_use]
    pub fn location(&self, name: &str) -> Option<String> {
        self.entry(name)?.location.map(|location| location.to_string())
    }

    /// Returns the module path of an authored tool, which begins with its crate; `None` for a tool that was made at run
    /// time, and for an unknown name.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&'static str> {
        self.entry(name)?.location.map(|location| location.module)
    }

    /// Returns all definitions, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries().map(|entry| &*entry.spec)
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() + self.late_entries().count()
    }

    /// Whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all tools, sorted by name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let name = |entry: &&Arc<Entry>| entry.spec.name.clone();
        let mut late: Vec<_> = self.late_entries().collect();
        late.sort_by_key(name);
        let (mut fixed, mut late) = (self.entries.iter().peekable(), late.into_iter().peekable());
        std::iter::from_fn(move || match (fixed.peek(), late.peek()) {
            (Some(one), Some(other)) if other.spec.name < one.spec.name => late.next(),
            (None, _) => late.next(),
            _ => fixed.next(),
        })
    }

    /// Returns the tools that the catalog was built with, sorted by name.
    pub(crate) fn fixed_entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Returns the tools that servers listed later.
    fn late_entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.servers.iter().filter_map(|server| server.entries()).flatten()
    }

    /// Returns the servers of the tools.
    pub(crate) fn servers(&self) -> &[Arc<ServerTools>] {
        &self.servers
    }

    /// Returns the server that might still list this tool. `None` if there is none.
    pub(crate) fn missing(&self, name: &str) -> Option<&Arc<dyn ToolServer>> {
        let missing = self.servers.iter().find(|server| name.starts_with(server.server().prefix()))?;
        missing.entries().is_none().then(|| missing.server())
    }

    /// Returns rules for the system prompt, rendered from the definitions.
    #[must_use]
    pub fn guidance(&self) -> String {
        guidance::render(self.specs())
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        match self.index.get(name) {
            Some(at) => self.entries.get(*at),
            None if is_discovered(name) => self.servers.iter().find_map(|server| server.entry(name)),
            None => None,
        }
    }

    /// Returns a view of the named tools, or of all tools, that `visible` accepts. With names, no other tool is
    /// examined.
    pub(crate) fn view(&self, named: Option<&RunTools>, visible: impl Fn(&Entry) -> bool) -> CatalogView {
        let visible = |entry: &&Arc<Entry>| visible(entry);
        CatalogView::new(match named {
            // The names are sorted like the catalog.
            Some(named) => named.iter().filter_map(|name| self.entry(name)).filter(visible).cloned().collect(),
            None => self.entries().filter(visible).cloned().collect(),
        })
    }

    /// Returns the reason why no call of a tool can run under this policy, regardless of its arguments and its caller.
    /// `None` if the policy can allow a call, and for an unknown name that does not begin with `mcp__`. A model never
    /// reads the reason, because its call is refused like a call of an unknown tool.
    ///
    /// ```
    /// use tool_runtime::{ToolCatalog, ToolError, ToolPolicy, tool};
    /// # /// Adds.
    /// # #[tool(name = "math__add", effect = read_only, redact = ["$"])]
    /// # fn add(
    /// #     /// One.
    /// #     a: i64,
    /// # ) -> Result<i64, ToolError> { Ok(a) }
    ///
    /// let catalog = ToolCatalog::builder().tool::<add>().build()?;
    /// let policy = ToolPolicy::allow(["math__add", "mcp__files__read"]);
    /// assert_eq!(catalog.unready(&policy, "math__add"), None);
    /// assert_eq!(catalog.unready(&policy, "mcp__files__read").map(|why| why.code()), Some("unlisted"));
    /// assert_eq!(catalog.all_unready(&policy).len(), 1);
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn unready(&self, policy: &ToolPolicy, name: &str) -> Option<Problem> {
        let server = self.servers().iter().find(|server| name.starts_with(server.server().prefix()));
        let of_server = || server.and_then(|server| server.server().unready(name));
        let unready = match self.entry(name) {
            Some(entry) => entry.unready(policy).or_else(of_server),
            None if is_discovered(name) => of_server().or(Some(Unready::Unlisted)),
            None => None,
        };
        unready.map(Problem::from)
    }

    /// Returns the tools that the policy names but that can never run under it, each with the reason.
    #[must_use]
    pub fn all_unready(&self, policy: &ToolPolicy) -> BTreeMap<String, Problem> {
        policy.mentioned().filter_map(|name| Some((name.to_owned(), self.unready(policy, name)?))).collect()
    }
}

#[cfg(feature = "picking")]
impl ToolCatalog {
    /// Picks the tools whose definitions fit a query best. The tools that the options always pick come first. The same
    /// catalog, query and options give the same picks on every platform.
    ///
    /// The words of names, titles, descriptions, arguments and `also` are compared, without case, accents and endings.
    /// The first call, and the first call after a server listed its tools, reads all definitions. Other calls take well
    /// under a millisecond for thousands of tools.
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
    /// assert!(picks[0].reasons().any(|(word, ..)| word == "tasks"));
    /// # Ok::<(), tool_runtime::error::BuildError>(())
    /// ```
    #[must_use]
    pub fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        self.words.of(self).index.pick(query, options, &|_| true)
    }

    /// Returns the words of a query that no tool has, like [`PickIndex::unmatched`].
    #[must_use]
    pub fn unmatched(&self, query: &str) -> Vec<String> {
        self.words.of(self).index.unmatched(query, &|_| true)
    }

    /// Picks from these tools of the catalog.
    pub(crate) fn pick_of<'e>(
        &self,
        query: &str,
        options: &PickOptions,
        tools: impl Iterator<Item = &'e Arc<Entry>>,
    ) -> Vec<Pick> {
        self.among(tools, |index, among| index.pick(query, options, among))
    }

    /// Returns the words of a query that none of these tools of the catalog has.
    pub(crate) fn unmatched_of<'e>(&self, query: &str, tools: impl Iterator<Item = &'e Arc<Entry>>) -> Vec<String> {
        self.among(tools, |index, among| index.unmatched(query, among))
    }

    fn among<'e, T>(
        &self,
        tools: impl Iterator<Item = &'e Arc<Entry>>,
        read: impl FnOnce(&PickIndex, &dyn Fn(usize) -> bool) -> T,
    ) -> T {
        let words = self.words.of(self);
        let mut visible = vec![false; words.tools];
        for slot in tools.filter_map(|entry| words.slot(entry)) {
            if let Some(slot) = visible.get_mut(slot) {
                *slot = true;
            }
        }
        read(&words.index, &|slot| visible.get(slot).copied().unwrap_or_default())
    }
}

impl fmt::Debug for ToolCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs().map(|spec| &spec.name)).finish()
    }
}
