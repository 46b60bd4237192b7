//! [`CatalogView`]: what the model of one run may see.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::catalog::{Entry, guidance};
use crate::json::{self, canonical};
use crate::tool::{Execution, Hash, ToolSpec};

/// The tools of one run.
pub struct CatalogView {
    entries: Vec<Arc<Entry>>,
    /// By name. Otherwise they are in the order in which a model was offered them.
    sorted: bool,
    hash: OnceLock<Hash>,
}

impl CatalogView {
    pub(super) fn new(entries: Vec<Arc<Entry>>) -> Self {
        Self { entries, sorted: true, hash: OnceLock::new() }
    }

    /// The definition of a visible tool.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entry(name).map(|entry| &*entry.spec)
    }

    /// Whether argument text may be shown while the model writes it: the tool is visible, none of it is sensitive, and
    /// it is not executed by the client, which gets what the tool prepares in its place.
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

    /// Those of the tools that are visible, in the given order.
    pub(crate) fn only<'n>(&self, names: impl Iterator<Item = &'n str>) -> Self {
        let entries = names.filter_map(|name| self.entry(name).cloned()).collect();
        Self { entries, sorted: false, hash: OnceLock::new() }
    }

    /// The visible definitions: by name, or in the order in which a model was offered them.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.iter().map(|entry| &*entry.spec)
    }

    /// The number of visible tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no tool is visible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Rules for the system prompt, rendered from the visible definitions.
    #[must_use]
    pub fn guidance(&self) -> String {
        guidance::render(self.specs())
    }

    /// The `catalog_hash`: SHA-256 of the canonical JSON (RFC 8785) of an object with the definition hash of each
    /// visible tool under its name. Equal views have equal hashes.
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
