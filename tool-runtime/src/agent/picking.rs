//! Picking: the selection of the tools that a request offers.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Agent;
use crate::catalog::{CatalogView, PickOptions, Scorer};
use crate::runner::Run;
use crate::tool::SEARCH;
use crate::wire::{RequestSettings, ToolChoice};

/// The picking settings of an agent.
#[derive(Clone)]
pub(super) struct Picking {
    options: PickOptions,
    scorer: Option<(Arc<dyn Scorer>, Duration)>,
}

impl Agent {
    /// Offers the model only tools that are relevant to the user's messages. Each message adds the tools that are
    /// picked for it to the tools that were offered before, up to 127 tools; tools of [`PickOptions::always`] and tools
    /// that a tool choice names are added without this limit. Without this setting and without a
    /// [`scorer`](Self::scorer), every request offers all tools that the run may see.
    ///
    /// `tools__search` ([`search_tools`](crate::registration::DynamicTool::search_tools)) is offered too if the run may
    /// see it, so that a model finds the rest. A call of a tool that was not offered ends as `unavailable`. Its message
    /// refers the model to `tools__search`. If the run may not see that tool, the call itself loads the called tool for
    /// the next turn, within the limit of 127. New tools are always appended, so that the beginning of a request stays
    /// in the provider's cache. The set of offered tools is part of the run and its snapshot.
    ///
    /// ```
    /// use tool_runtime::agent::Agent;
    /// use tool_runtime::catalog::PickOptions;
    /// use tool_runtime::testing::ScriptedModel;
    ///
    /// let agent = Agent::new(ScriptedModel::new([])).pick(PickOptions::new(10).always(["tasks__list"]));
    /// # let _ = agent;
    /// ```
    pub fn pick(mut self, options: PickOptions) -> Self {
        let scorer = self.picking.and_then(|picking| picking.scorer);
        self.picking = Some(Picking { options, scorer });
        self
    }

    /// Sets a scorer for picking, with the time limit for its scores. Without usable scores in time, tools are picked
    /// as without a scorer. Uses the default options unless [`pick`](Self::pick) sets others.
    pub fn scorer(mut self, scorer: impl Scorer + 'static, deadline: Duration) -> Self {
        let options = self.picking.map(|picking| picking.options).unwrap_or_default();
        self.picking = Some(Picking { options, scorer: Some((Arc::new(scorer), deadline)) });
        self
    }
}

/// Offers the tools that fit a message of the user.
pub(super) async fn pick(picking: Option<&Picking>, run: &Run, query: &str) {
    let Some(Picking { options, scorer }) = picking else { return };
    let picks = run.pick_scored(query, options, scorer.as_ref()).await;
    let (always, picked): (Vec<_>, Vec<_>) = picks.iter().partition(|pick| pick.always);
    run.load_all(always.iter().map(|pick| pick.name.as_str()).chain([SEARCH]));
    run.load(picked.iter().map(|pick| pick.name.as_str()));
}

/// Returns the tools that the next request offers; `None` for all tools that the run may see.
pub(super) async fn offered(
    picking: Option<&Picking>,
    run: &Run,
    settings: &RequestSettings,
) -> Option<Arc<CatalogView>> {
    // The conversation began without a message, so nothing was picked yet.
    if picking.is_some() && !run.is_picking() {
        pick(picking, run, "").await;
    }
    // A model can choose only an offered tool, so the tools of a forced choice are loaded.
    if run.is_picking() {
        run.load_all(settings.tool_choice.iter().flat_map(ToolChoice::names));
    }
    run.offered()
}
