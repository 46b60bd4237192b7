//! [`Views`]: what the runs of one party may see and call is found out once for all of them.
//!
//! Asking the policy for each tool of a large catalog, hashing and rendering what it shows costs far more than a call;
//! a server that starts a run for each request would pay it for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::catalog::CatalogView;
use crate::policy::{Party, PolicyContext, RunPolicy};
use crate::runner::admissions::Admissions;
use crate::runner::shared::Shared;

/// The most parties whose view is kept, and the most tools in all of their views: a pointer each.
const MOST_PARTIES: usize = 256;
const MOST_TOOLS: usize = 1 << 20;

/// The views of one runner, which has one catalog and one policy. A view is used as long as no server has changed anything
/// since before it was made. The least recently used makes room.
#[derive(Default)]
pub(in crate::runner) struct Views(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    views: HashMap<Party, Known>,
    /// The tools of all views.
    tools: usize,
    /// Counts uses.
    now: u64,
}

struct Known {
    view: Arc<CatalogView>,
    admissions: Arc<Admissions>,
    /// The catalog's count of changes before the first tool was looked at.
    changes: u64,
    used: u64,
}

/// What a run may see, and what is known of its calls: `None` if it shares that with no other.
pub(in crate::runner) struct PartyView {
    pub(in crate::runner) view: Arc<CatalogView>,
    pub(in crate::runner) admissions: Option<Arc<Admissions>>,
}

impl Known {
    fn shared(&self) -> PartyView {
        PartyView { view: Arc::clone(&self.view), admissions: Some(Arc::clone(&self.admissions)) }
    }
}

impl Shared {
    /// Returns what the model of a run with this context may see, and what is known of its calls.
    pub(in crate::runner) fn view(&self, policy: &RunPolicy, context: &PolicyContext<'_>) -> PartyView {
        let changes = self.catalog.changes();
        let party = policy.party(context);
        let known = party.as_ref().and_then(|party| self.views.get(party, changes));
        known.unwrap_or_else(|| {
            // Outside of the lock. Two runs may do this at the same time, for the same view.
            let view = Arc::new(self.catalog.view(context.tools, |entry| self.visible(policy, context, entry)));
            match party {
                Some(party) => self.views.keep(party, view, changes),
                None => PartyView { view, admissions: None },
            }
        })
    }
}

impl Views {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, party: &Party, changes: u64) -> Option<PartyView> {
        let mut kept = self.kept();
        kept.now += 1;
        let now = kept.now;
        let found = kept.views.get_mut(party).filter(|found| found.changes == changes)?;
        found.used = now;
        Some(found.shared())
    }

    /// Keeps a view. Parties that see the same tools share one, with all that is made of it.
    fn keep(&self, party: Party, view: Arc<CatalogView>, changes: u64) -> PartyView {
        let mut kept = self.kept();
        let same = kept.views.values().find(|known| known.view.has_tools_of(&view));
        let view = same.map_or(view, |known| Arc::clone(&known.view));
        kept.now += 1;
        kept.tools += view.len();
        let admissions = Arc::default();
        let new = Known { view, admissions, changes, used: kept.now };
        let shared = new.shared();
        if let Some(before) = kept.views.insert(party, new) {
            kept.tools -= before.view.len();
        }
        while kept.views.len() > MOST_PARTIES || kept.tools > MOST_TOOLS {
            let oldest = kept.views.iter().min_by_key(|(_, known)| known.used).map(|(party, _)| party.clone());
            let Some(before) = oldest.and_then(|party| kept.views.remove(&party)) else { break };
            kept.tools -= before.view.len();
        }
        shared
    }
}

#[cfg(test)]
mod tests;
