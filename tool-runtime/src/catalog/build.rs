//! [`CatalogBuilder`]: gathers tools and reports all of their problems together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::catalog::graph::bind;
use crate::catalog::{CatalogProblemKind, Entry, SourceServer, ToolCatalog};
use crate::component::{Named, Tool, Visitor};
use crate::error::{BuildError, Problem};
use crate::registration::{Described, DynamicTool, Registration};
use crate::text::nearest;
use crate::tool::is_discovered;

/// Collects the tools of a catalog; [`build`](Self::build) checks them.
///
/// ```
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// /// Rolls a die.
/// #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// fn roll() -> Result<u32, ToolError> {
///     Ok(4)
/// }
/// use tool_runtime::registration::DynamicTool;
///
/// let catalog = ToolCatalog::builder().tool::<roll>().dynamic(DynamicTool::search_tools()).build()?;
/// assert_eq!(catalog.specs().count(), 2);
///
/// // Two tools of one name are an error.
/// let [one, other] = [DynamicTool::search_tools(), DynamicTool::search_tools()];
/// let twice = ToolCatalog::builder().dynamic(one).dynamic(other).build();
/// assert_eq!(twice.unwrap_err().code(), "collision");
/// # Ok::<(), tool_runtime::error::BuildError>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct CatalogBuilder {
    linked: bool,
    crates: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    chosen: Vec<Registration>,
    dynamic: Vec<DynamicTool>,
    servers: Vec<SourceServer>,
}

impl CatalogBuilder {
    /// Adds every authored tool that is linked into the program. [`crates`](Self::crates) and
    /// [`namespaces`](Self::namespaces) narrow the choice.
    pub fn collect(mut self) -> Self {
        self.linked = true;
        self
    }

    /// Like [`collect`](Self::collect), but only tools of these crates. In the names of crates, `-` and `_` are
    /// equivalent.
    pub fn crates<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.crates.extend(names.into_iter().map(|name| name.into().replace('-', "_")));
        self.collect()
    }

    /// Like [`collect`](Self::collect), but only tools of these namespaces.
    pub fn namespaces<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.namespaces.extend(names.into_iter().map(Into::into));
        self.collect()
    }

    /// Adds one authored tool: its struct, or the name of its function. For a function without `#[tool]`, the
    /// compiler reports E0747, "constant provided when a type was expected".
    #[rustfmt::skip] // The compiler shows the next comment to a caller that passes the function as a value.
    pub fn tool<T: Named>(mut self) -> Self { // name the tool as a type: `.tool::<count>()`
        struct Register;

        impl Visitor for Register {
            type Answer = Registration;

            fn visit<T: Tool>(self) -> Registration {
                Registration::of::<T>()
            }
        }

        self.chosen.push(T::visit(Register));
        self
    }

    /// Adds a dynamic tool, or a [`Graph`](crate::agent::Graph).
    pub fn dynamic(mut self, tool: impl Into<DynamicTool>) -> Self {
        self.dynamic.push(tool.into());
        self
    }

    /// Adds an MCP server. If it has not listed its tools yet, they are added when it does.
    #[cfg(feature = "mcp-client")]
    pub(crate) fn server(mut self, server: SourceServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Checks all tools and creates the catalog.
    ///
    /// # Errors
    /// Every problem of every tool: illegal and colliding names, invalid schemas, allowlists that do not fit their
    /// schema, rules for arguments that do not exist or do not fit them, evidence from tools that do not exist or show
    /// nothing, and graphs (agents and scripts that run as tools) with tools that they cannot have. Also filters
    /// without a match, and, after [`collect`](Self::collect), a catalog without any authored or dynamic tool.
    pub fn build(self) -> Result<ToolCatalog, BuildError> {
        let mut problems = Vec::new();
        let registrations = self.registrations(&mut problems);
        let described = registrations.iter().map(Registration::describe);
        let described: Vec<_> = described.chain(self.dynamic.into_iter().map(DynamicTool::describe)).collect();
        // Evidence is checked before entries exist, because a tool with a mistake gets no entry but can list values.
        evidence(&described, &mut problems);
        let described = described.into_iter();
        let (graphs, tools): (Vec<_>, Vec<_>) = described.partition(|described| described.graph.is_some());
        let mut entries: Vec<_> =
            tools.into_iter().filter_map(|described| Entry::new(described, &mut problems)).collect();
        for mut graph in graphs {
            bind(&mut graph, &entries, &self.servers, &mut problems);
            entries.extend(Entry::new(graph, &mut problems));
        }
        collisions(&entries, &mut problems);
        prefixes(&entries, &self.servers, &mut problems);
        if !problems.is_empty() {
            return Err(BuildError::new(problems));
        }
        Ok(ToolCatalog::new(entries, &self.servers))
    }

    /// Returns the registrations of the chosen and the linked tools, sorted so that messages have a fixed order.
    fn registrations(&self, problems: &mut Vec<Problem>) -> Vec<Registration> {
        let mut found = self.chosen.clone();
        if self.linked {
            let all: Vec<_> = inventory::iter::<Registration>().collect();
            let crates = all.iter().map(|one| one.location().krate).collect::<BTreeSet<_>>();
            let namespaces = all.iter().map(|one| namespace(one)).collect::<BTreeSet<_>>();
            unmatched("crate", &self.crates, &crates, problems);
            unmatched("namespace", &self.namespaces, &namespaces, problems);
            if all.is_empty() && problems.is_empty() && found.is_empty() && self.dynamic.is_empty() {
                let message = "no tools are linked; write `use my_tools as _;` for each crate of tools, because a \
                               crate without a used item is not linked";
                problems.push(CatalogProblemKind::Empty.problem(message, None));
            }
            let takes = |names: &BTreeSet<String>, name: &str| names.is_empty() || names.contains(name);
            found
                .extend(all.into_iter().filter(|one| {
                    takes(&self.crates, one.location().krate) && takes(&self.namespaces, namespace(one))
                }));
        }
        found.sort_by_key(|registration| (registration.meta.name, registration.meta.location));
        // A tool that was both chosen and linked is one tool.
        found.dedup_by_key(|registration| (registration.meta.name, registration.meta.location));
        found
    }
}

fn namespace(registration: &Registration) -> &'static str {
    registration.meta.name.split("__").next().unwrap_or_default()
}

#[cfg(feature = "mcp-client")]
impl ToolCatalog {
    /// Returns this catalog with the tools of a source added.
    pub(crate) fn extended(self, tools: Vec<DynamicTool>, servers: &[SourceServer]) -> Result<Self, BuildError> {
        let mut problems = Vec::new();
        let mut entries: Vec<_> = self.entries.into_iter().filter_map(std::sync::Arc::into_inner).collect();
        let own = self.servers.iter().map(|server| server.source());
        let servers: Vec<_> = own.chain(servers.iter().cloned()).collect();
        entries.extend(tools.into_iter().filter_map(|tool| Entry::new(tool.describe(), &mut problems)));
        collisions(&entries, &mut problems);
        prefixes(&entries, &servers, &mut problems);
        if problems.is_empty() { Ok(Self::new(entries, &servers)) } else { Err(BuildError::new(problems)) }
    }
}

/// Reports filters without a match, which would silently leave out tools.
fn unmatched(of: &str, wanted: &BTreeSet<String>, linked: &BTreeSet<&str>, problems: &mut Vec<Problem>) {
    for name in wanted.iter().filter(|name| !linked.contains(name.as_str())) {
        let list: Vec<_> = linked.iter().map(|name| format!("`{name}`")).collect();
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        let suggestion = nearest(name, linked.iter().copied());
        let suggestion = suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
        let message = format!(
            "no tool of the {of} `{}` is linked; linked: {list}{suggestion}; write `use my_tools as _;` to link a crate",
            name.escape_debug()
        );
        problems.push(CatalogProblemKind::Empty.problem(message, None));
    }
}

/// Normalizes a name. Names that differ only in case or in `-` and `_` become equal, because a model confuses them.
pub(crate) fn look_alike(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn collisions(entries: &[Entry], problems: &mut Vec<Problem>) {
    let mut alike: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        alike.entry(look_alike(entry.spec.name.as_str())).or_default().push(entry);
    }
    for same in alike.into_values().filter(|same| same.len() > 1) {
        let names: BTreeSet<_> = same.iter().map(|entry| format!("`{}`", entry.spec.name)).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(" and ");
        let mut places: Vec<_> = same.iter().filter_map(|entry| entry.location).collect();
        places.sort_unstable();
        problems.push(CatalogProblemKind::Collision.problem(
            format!(
                "{} tools are called {names}; rename all but one; names have to differ in more than case, `-` and `_`",
                same.len()
            ),
            places,
        ));
    }
}

/// Checks that no other tool or server has a name under the prefix of a server that has not listed its tools yet.
fn prefixes(entries: &[Entry], servers: &[SourceServer], problems: &mut Vec<Problem>) {
    let alike = |source: &SourceServer| look_alike(source.server.prefix());
    for (at, source) in servers.iter().enumerate().filter(|(_, source)| !source.is_listed) {
        let prefix = alike(source);
        let is_taken =
            servers.iter().enumerate().any(|(other, one)| (other < at || one.is_listed) && alike(one) == prefix)
                || entries.iter().any(|entry| look_alike(entry.spec.name.as_str()).starts_with(&prefix));
        if is_taken {
            let prefix = source.server.prefix();
            let message = format!("two sources have tools called `{prefix}..`; give one of the servers another id");
            problems.push(CatalogProblemKind::Collision.problem(message, None));
        }
    }
}

/// Reports evidence from a tool that is neither in this catalog nor in a linked crate, and from a tool that shows
/// nothing. A server may list its tools later.
fn evidence(tools: &[Described], problems: &mut Vec<Problem>) {
    if tools.iter().all(|tool| tool.evidence.is_empty()) {
        return;
    }
    // Maps each tool to whether its results can contain no evidence. The value is `false` for a graph, because the
    // results of its calls are evidence.
    let linked = inventory::iter::<Registration>().map(|one| one.meta);
    let linked = linked.map(|meta| (meta.name, meta.redact.is_empty() && meta.model.is_empty()));
    let mut known: BTreeMap<&str, bool> = linked.collect();
    known.extend(tools.iter().map(|tool| {
        let shows_nothing = tool.allow.as_ref().is_some_and(Vec::is_empty) && tool.model.is_empty();
        (&*tool.written, shows_nothing && tool.graph.is_none())
    }));
    for tool in tools {
        for (argument, lister) in &tool.evidence {
            let shows_nothing = known.get(lister.as_str());
            if shows_nothing == Some(&true) {
                let message = format!(
                    "`{}`: the evidence of `{argument}` comes from the tool `{lister}`, which shows nothing; add the \
                     path of the ids to its `redact` or `model`",
                    tool.written.escape_debug(),
                );
                problems.push(CatalogProblemKind::Evidence.problem(message, tool.location));
            }
            if shows_nothing.is_some() || is_discovered(lister) {
                continue;
            }
            let suggestion = nearest(lister, known.keys().copied());
            let suggestion = suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default();
            let message = format!(
                "`{}`: the evidence of `{argument}` comes from the tool `{}`, which does not exist{suggestion}",
                tool.written.escape_debug(),
                lister.escape_debug()
            );
            problems.push(CatalogProblemKind::Evidence.problem(message, tool.location));
        }
    }
}

impl fmt::Debug for CatalogBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogBuilder").field("dynamic", &self.dynamic).finish_non_exhaustive()
    }
}
