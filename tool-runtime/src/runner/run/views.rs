//! [`Views`]: a cache of the tools that a party (runs that the policy cannot tell apart) may see.
//!
//! Evaluating the policy for each tool of a large catalog, and hashing and rendering the visible tools, costs far more
//! than a call. Without the cache, a server that starts a run for each request would repeat this work each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalog::{CatalogView, Entry, ToolCatalog};
use crate::policy::{Party, PolicyContext, RunPolicy};

/// The maximum number of parties whose views are kept.
const MOST_PARTIES: usize = 256;
/// The maximum number of tools in all views together. Each takes the memory of a pointer.
const MOST_TOOLS: usize = 1 << 20;

/// The views of one runner, which has one catalog and one policy. A view is valid until an MCP server changes its
/// tools. A full cache evicts the least recently used view.
#[derive(Default)]
pub(in crate::runner) struct Views(Mutex<ViewCache>);

#[derive(Default)]
struct ViewCache {
    views: HashMap<Party, Known>,
    /// The number of tools in all views.
    tools: usize,
    /// A counter of uses.
    now: u64,
}

struct Known {
    view: Arc<CatalogView>,
    /// The catalog's count of changes before the first tool was read.
    changes: u64,
    used: u64,
}

impl Views {
    /// Returns the view of the context's party, from the cache or newly built. `visible` states whether the policy
    /// shows a tool.
    pub(in crate::runner) fn of(
        &self,
        catalog: &ToolCatalog,
        policy: &RunPolicy,
        context: &PolicyContext<'_>,
        visible: impl Fn(&Entry) -> bool,
    ) -> Arc<CatalogView> {
        let changes = catalog.changes();
        let party = Party::of(policy, context);
        let known = party.as_ref().and_then(|party| self.get(party, changes));
        known.unwrap_or_else(|| {
            // The view is built outside the lock, so two runs can build the same view at the same time.
            let view = Arc::new(catalog.view(context.tools, visible));
            match party {
                Some(party) => self.keep(party, view, changes),
                None => view,
            }
        })
    }

    fn kept(&self) -> MutexGuard<'_, ViewCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, party: &Party, changes: u64) -> Option<Arc<CatalogView>> {
        let mut kept = self.kept();
        kept.now += 1;
        let now = kept.now;
        let found = kept.views.get_mut(party).filter(|found| found.changes == changes)?;
        found.used = now;
        Some(Arc::clone(&found.view))
    }

    /// Keeps a view. Parties that see the same tools share one view and everything derived from it.
    fn keep(&self, party: Party, view: Arc<CatalogView>, changes: u64) -> Arc<CatalogView> {
        let mut kept = self.kept();
        let same = kept.views.values().find(|known| known.view.has_tools_of(&view));
        let view = same.map_or(view, |known| Arc::clone(&known.view));
        kept.now += 1;
        kept.tools += view.len();
        let new = Known { view: Arc::clone(&view), changes, used: kept.now };
        if let Some(before) = kept.views.insert(party, new) {
            kept.tools -= before.view.len();
        }
        while kept.views.len() > MOST_PARTIES || kept.tools > MOST_TOOLS {
            let oldest = kept.views.iter().min_by_key(|(_, known)| known.used).map(|(party, _)| party.clone());
            let Some(before) = oldest.and_then(|party| kept.views.remove(&party)) else { break };
            kept.tools -= before.view.len();
        }
        view
    }
}

#[cfg(test)]
mod tests;
