//! Caches the index over a catalog's tools between picks.

use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::pick::PickIndex;
use crate::catalog::{Entry, ToolCatalog};

/// The cached index over a catalog. A pick builds it if it is missing, or if a server has listed its tools since.
#[derive(Default)]
pub(crate) struct CatalogWords(Mutex<Option<Arc<Words>>>);

impl CatalogWords {
    /// Returns the index over all tools that are listed so far.
    pub(crate) fn of(&self, catalog: &ToolCatalog) -> Arc<Words> {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let come = catalog.servers().iter().filter(|server| server.entries().is_some()).count();
        match &*words {
            Some(known) if known.first.iter().flatten().count() >= come => Arc::clone(known),
            _ => Arc::clone(words.insert(Arc::new(Words::of(catalog)))),
        }
    }
}

/// The index over a catalog's tools at one time. The slot of a tool that the catalog was built with is its position.
pub(crate) struct Words {
    pub(crate) index: PickIndex,
    /// The number of tools.
    pub(crate) tools: usize,
    /// The slot of the first tool of each server, by the server's position; `None` before the server's list.
    first: Vec<Option<usize>>,
}

impl Words {
    fn of(catalog: &ToolCatalog) -> Self {
        let mut words = Self { index: PickIndex::default(), tools: 0, first: Vec::new() };
        words.add(catalog.fixed_entries());
        for server in catalog.servers() {
            let (first, entries) = (words.tools, server.entries());
            words.first.push(entries.map(|_| first));
            words.add(entries.unwrap_or_default());
        }
        words
    }

    fn add(&mut self, entries: &[Arc<Entry>]) {
        for entry in entries {
            self.index.insert(&entry.spec);
        }
        self.tools += entries.len();
    }

    pub(crate) fn slot(&self, entry: &Entry) -> Option<usize> {
        let Some(place) = entry.deferred else { return Some(entry.index) };
        self.first.get(place).copied().flatten().map(|first| first + entry.index)
    }
}
