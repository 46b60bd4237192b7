//! Which of its visible tools a model is offered. The set only grows, is part of the run's snapshot, and is never wider
//! than what the run may see.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Outcome;
use crate::catalog::pick::scores;
use crate::catalog::{CatalogView, Pick, PickOptions, Scorer};
use crate::runner::Run;
use crate::runner::gate::ending::Stop;
use crate::tool::{SEARCH, ToolSpec};

/// The most tools that are loaded by picking and by looking for them. OpenAI and Gemini refuse a request with more than
/// 128, one of which may be that of a typed answer.
const MOST: usize = 127;

/// What a model reads when no more tools can be loaded.
pub(in crate::runner) const FULL: &str =
    "There is no room for more tools in this conversation: use those that you have.";

/// The tools that are loaded, in the order in which they were.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::runner) struct Offered {
    tools: Vec<String>,
    /// How many of them the first request had: the rules for them stay in the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<usize>,
    /// How many of them the latest request had: the model has read the definitions of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<usize>,
    /// The tools of a view, until there are more, and the id of that view. A snapshot may be restored where less is
    /// visible.
    #[serde(skip)]
    view: Option<(u64, Arc<CatalogView>)>,
}

impl Offered {
    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|known| known == name)
    }

    /// Whether the tool was in the latest request, or is to be in the first.
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

impl Run {
    /// Picks from the tools that the model of this run may see, as [`ToolCatalog::pick`](crate::ToolCatalog::pick)
    /// does. What the policy hides is never picked.
    #[must_use]
    pub fn pick(&self, query: &str, options: &PickOptions) -> Vec<Pick> {
        self.shared().catalog.pick_of(query, options, self.catalog().entries())
    }

    /// Picks by the scores of the application, or as [`pick`](Self::pick) does if there are none.
    pub(crate) async fn pick_scored(
        &self,
        query: &str,
        options: &PickOptions,
        scorer: Option<&(Arc<dyn Scorer>, Duration)>,
    ) -> Vec<Pick> {
        let Some((scorer, deadline)) = scorer else { return self.pick(query, options) };
        let tools: Vec<&ToolSpec> = self.catalog().specs().collect();
        match scores(&**scorer, *deadline, query, &tools).await {
            Ok(scores) => options.scored(
                tools
                    .iter()
                    .map(|tool| (tool.name.clone(), scores.get(tool.name.as_str()).copied().unwrap_or_default())),
            ),
            Err(fault) => {
                self.report("a scorer of tools gave no scores", fault.code, &fault.text);
                self.pick(query, options)
            }
        }
    }

    /// Loads visible tools in addition to those that were loaded before, and returns those that are loaded now. From now
    /// on the model is offered no others.
    pub(crate) fn load<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        self.load_up_to(MOST, names)
    }

    /// Loads the tools that the application asks for, however many they are.
    pub(crate) fn load_all<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        self.load_up_to(usize::MAX, names);
    }

    fn load_up_to<'n>(&self, most: usize, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        self.remembered().offer(|offered| {
            let offered = offered.get_or_insert_default();
            names.into_iter().filter(|name| self.catalog().get(name).is_some() && offered.load(name, most)).collect()
        })
    }

    /// Whether the model is offered some of its tools only.
    pub(crate) fn is_picking(&self) -> bool {
        self.state().offered().is_some()
    }

    /// What the model is offered now, in the order in which it was; `None` for all that it may see.
    pub(crate) fn offered(&self) -> Option<Arc<CatalogView>> {
        self.remembered().offer(|offered| {
            // With every tool loaded there is none to look for.
            let Some(offered) = offered else { return self.catalog().without(SEARCH).cloned() };
            offered.first.get_or_insert(offered.tools.len());
            offered.shown = Some(offered.tools.len());
            let of = self.catalog().id();
            if let Some((_, view)) = offered.view.as_ref().filter(|(known, _)| *known == of) {
                return Some(Arc::clone(view));
            }
            let view = Arc::new(self.catalog().only(offered.tools.iter().map(String::as_str)));
            offered.view = Some((of, Arc::clone(&view)));
            Some(view)
        })
    }

    /// The rules for the system prompt, the same in every request of the run.
    pub(crate) fn guidance(&self) -> String {
        let Some(Offered { tools, first, .. }) = self.state().offered().cloned() else {
            return self.catalog().guidance();
        };
        let first = tools.iter().take(first.unwrap_or(tools.len()));
        let mut text = self.catalog().only(first.map(String::as_str)).guidance();
        if self.catalog().get(SEARCH).is_some() {
            text.push_str("- There are more tools than you see. When none of yours fits, call `");
            text.push_str(SEARCH);
            text.push_str("` before you say that something cannot be done.\n");
        }
        text
    }

    /// A visible tool does not run before the model was offered it, because the model has not read its definition.
    #[inline]
    pub(in crate::runner) fn check_offered(&self, name: &str) -> Result<(), Stop> {
        if self.remembered().is_offered(name) || self.catalog().get(name).is_none() {
            return Ok(());
        }
        Err(self.not_offered(name))
    }

    #[cold]
    fn not_offered(&self, name: &str) -> Stop {
        let state = |offered: &Offered| (offered.has(name), offered.tools.len() >= MOST);
        let (is_loaded, is_full) = self.state().offered().map(state).unwrap_or_default();
        let message = if is_full && !is_loaded {
            format!("This tool is not loaded, so the call did not run. {FULL}")
        } else if !is_loaded && self.catalog().get(SEARCH).is_some() {
            format!("This tool is not loaded, so the call did not run. Load it with `{SEARCH}`, then call it.")
        } else {
            self.load([name]);
            "This tool was not loaded, so the call did not run. It is loaded now: read its definition, then call it."
                .to_owned()
        };
        Stop::new(Outcome::Unavailable).message(message)
    }
}
