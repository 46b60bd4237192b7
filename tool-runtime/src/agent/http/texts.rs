//! [`Texts`]: a cache of the encoded tools in a model's requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::http::endpoint;
use crate::agent::http::settings::Settings;
use crate::agent::{ModelError, ModelRequest};
use crate::wire::OfferedTools;

/// The maximum number of cached views, and the maximum size of all their tools together, in bytes.
const MOST_VIEWS: usize = 256;
const MOST_BYTES: usize = 32 << 20;

/// The encoded tools of recent requests to a model, by the view of the catalog. A view never changes and its id is
/// unique, so an entry is never stale. The least recently used entry is evicted.
#[derive(Default)]
pub(super) struct Texts(Mutex<TextCache>);

#[derive(Default)]
struct TextCache {
    /// Keyed by the id of the view, the most recently used last.
    views: VecDeque<(u64, Arc<OfferedTools>)>,
    bytes: usize,
}

impl Texts {
    /// Returns the encoded tools of a request. Tools that a tool choice restricts are not cached.
    pub(super) fn of(&self, settings: &Settings, request: &ModelRequest<'_>) -> Result<Arc<OfferedTools>, ModelError> {
        let choice = request.settings.tool_choice.as_ref();
        let dialect = settings.format.dialect();
        let is_shared = !dialect.features().narrows(choice);
        let view = request.tools.id();
        if let Some(known) = is_shared.then(|| self.get(view)).flatten() {
            return Ok(known);
        }
        let mut options = endpoint::options(settings);
        options.settings.tool_choice = choice.filter(|_| !is_shared).cloned();
        // Encoded outside the lock, because a thousand tools take milliseconds.
        let tools = OfferedTools::new(dialect, request.tools.specs(), &options).map_err(endpoint::encode)?;
        let tools = Arc::new(tools);
        if is_shared {
            self.keep(view, &tools);
        }
        Ok(tools)
    }

    fn kept(&self) -> MutexGuard<'_, TextCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, view: u64) -> Option<Arc<OfferedTools>> {
        let mut kept = self.kept();
        let at = kept.views.iter().position(|(id, _)| *id == view)?;
        let found = kept.views.remove(at)?;
        let tools = Arc::clone(&found.1);
        kept.views.push_back(found);
        Some(tools)
    }

    fn keep(&self, view: u64, tools: &Arc<OfferedTools>) {
        let mut kept = self.kept();
        if tools.size() > MOST_BYTES || kept.views.iter().any(|(id, _)| *id == view) {
            return;
        }
        kept.bytes += tools.size();
        kept.views.push_back((view, Arc::clone(tools)));
        while kept.views.len() > MOST_VIEWS || kept.bytes > MOST_BYTES {
            let Some((_, oldest)) = kept.views.pop_front() else { break };
            kept.bytes -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests;
