//! The subset of the visible tools that the requests of a run offer to its model. The set only grows, is part of the
//! run's snapshot, and contains only tools of the run's view.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::Outcome;
use crate::catalog::CatalogView;
use crate::runner::gate::ending::Stop;
use crate::runner::run::state::Remembered;
use crate::tool::SEARCH;

/// The maximum number of tools that picking and search load. OpenAI and Gemini refuse a request with more than 128
/// tools, and a typed answer can need a tool in addition to the loaded ones.
pub(in crate::runner) const MAX_LOADED_TOOLS: usize = 127;

/// The message to the model if no more tools can be loaded.
pub(in crate::runner) const FULL: &str =
    "There is no room for more tools in this conversation: use those that you have.";

/// The loaded tools, in the order of loading.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::runner) struct Offered {
    tools: Vec<String>,
    /// The number of tools in the first request. The instructions of every request contain the rules for these tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<usize>,
    /// The number of tools in the latest request, whose definitions the model has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<usize>,
    /// The cached view of the loaded tools, with the id of the run's view from which it was made. A restored run can
    /// have another view, with fewer tools.
    #[serde(skip)]
    view: Option<(u64, Arc<CatalogView>)>,
}

impl Offered {
    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|known| known == name)
    }

    /// Whether the tool was in the latest request, or will be in the first.
    pub(in crate::runner) fn is_shown(&self, name: &str) -> bool {
        self.tools.iter().take(self.shown.unwrap_or(usize::MAX)).any(|known| known == name)
    }

    /// Loads a tool, and returns whether it is loaded now.
    fn load(&mut self, name: &str, most: usize) -> bool {
        if self.has(name) {
            return true;
        }
        let has_room = self.tools.len() < most;
        if has_room {
            self.tools.push(name.to_owned());
            self.view = None;
        }
        has_room
    }
}

/// Loads visible tools in addition to the tools loaded before, up to `most`. Returns the part of `names` that is loaded
/// now.
pub(in crate::runner) fn load<'n>(
    remembered: &Remembered,
    view: &CatalogView,
    most: usize,
    names: impl IntoIterator<Item = &'n str>,
) -> Vec<&'n str> {
    remembered.offer(|offered| {
        let offered = offered.get_or_insert_default();
        names.into_iter().filter(|name| view.get(name).is_some() && offered.load(name, most)).collect()
    })
}

/// Returns the tools that the model is offered now, in the order of loading; `None` if it is offered all visible tools.
pub(in crate::runner) fn offered(remembered: &Remembered, view: &Arc<CatalogView>) -> Option<Arc<CatalogView>> {
    remembered.offer(|offered| {
        // A model that gets every tool does not need the search.
        let Some(offered) = offered else { return view.without(SEARCH).cloned() };
        offered.first.get_or_insert(offered.tools.len());
        offered.shown = Some(offered.tools.len());
        let of = view.id();
        if let Some((_, shown)) = offered.view.as_ref().filter(|(known, _)| *known == of) {
            return Some(Arc::clone(shown));
        }
        let shown = Arc::new(view.only(offered.tools.iter().map(String::as_str)));
        offered.view = Some((of, Arc::clone(&shown)));
        Some(shown)
    })
}

/// Returns the rules about tools for the system prompt. They are the same in every request of the run.
pub(in crate::runner) fn guidance(remembered: &Remembered, view: &CatalogView) -> String {
    let Some(Offered { tools, first, .. }) = remembered.lock().offered().cloned() else {
        return view.guidance();
    };
    let first = tools.iter().take(first.unwrap_or(tools.len()));
    let mut text = view.only(first.map(String::as_str)).guidance();
    if view.get(SEARCH).is_some() {
        text.push_str("- There are more tools than you see. When none of yours fits, call `");
        text.push_str(SEARCH);
        text.push_str("` before you say that something cannot be done.\n");
    }
    text
}

/// Refuses a call of a visible tool that no request has offered, because the model has not read its definition.
#[inline]
pub(in crate::runner) fn check(remembered: &Remembered, view: &CatalogView, name: &str) -> Result<(), Stop> {
    if remembered.is_offered(name) || view.get(name).is_none() {
        return Ok(());
    }
    Err(not_offered(remembered, view, name))
}

#[cold]
fn not_offered(remembered: &Remembered, view: &CatalogView, name: &str) -> Stop {
    let state = |offered: &Offered| (offered.has(name), offered.tools.len() >= MAX_LOADED_TOOLS);
    let (is_loaded, is_full) = remembered.lock().offered().map(state).unwrap_or_default();
    let message = if is_full && !is_loaded {
        format!("This tool is not loaded, so the call did not run. {FULL}")
    } else if !is_loaded && view.get(SEARCH).is_some() {
        format!("This tool is not loaded, so the call did not run. Load it with `{SEARCH}`, then call it.")
    } else {
        load(remembered, view, MAX_LOADED_TOOLS, [name]);
        "This tool was not loaded, so the call did not run. It is loaded now: read its definition, then call it."
            .to_owned()
    };
    Stop::new(Outcome::Unavailable).message(message)
}
