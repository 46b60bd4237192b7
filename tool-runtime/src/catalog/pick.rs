//! Picking the tools that fit a request.
//!
//! The ranking compares words (BM25F over the fields of a definition). It is deterministic, and each pick lists the
//! words that led to it.

mod catalog_words;
mod fields;
mod index;
mod rank;
mod scorer;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use catalog_words::CatalogWords;
pub use index::PickIndex;
use rank::PickReason;
pub use scorer::Scorer;
pub(crate) use scorer::scored;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::tool::ToolName;

/// Options for picking: the maximum number of tools, the minimum score, and the tools that are always picked.
///
/// ```
/// use tool_runtime::catalog::PickOptions;
///
/// let options = PickOptions::new(5).always(["tasks__list_tasks"]);
/// # let _ = options;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct PickOptions {
    pub(crate) most: usize,
    pub(crate) min_score: f64,
    pub(crate) always: BTreeSet<String>,
}

impl PickOptions {
    /// The maximum number of tools that are picked for one query.
    pub const MOST: usize = 128;

    /// Picks at most `most` tools, and never more than [`MOST`](Self::MOST), each with a score of 0.05 or more.
    pub const fn new(most: usize) -> Self {
        let most = if most > Self::MOST { Self::MOST } else { most };
        Self { most, min_score: 0.05, always: BTreeSet::new() }
    }

    /// Sets the minimum score of a picked tool, from 0 to 1. With `NaN`, no tool is picked.
    pub const fn min_score(mut self, score: f64) -> Self {
        self.min_score = score;
        self
    }

    /// Picks these tools for every query, before the other tools and without counting them. A name is left out if the
    /// catalog does not have it or the model may not see it.
    pub fn always<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.always.extend(tools.into_iter().map(Into::into));
        self
    }
}

impl PickOptions {
    /// Picks by the scores of a [`Scorer`].
    pub(crate) fn scored(&self, tools: impl Iterator<Item = (ToolName, f64)>) -> Vec<Pick> {
        let (mut always, mut rest): (Vec<_>, Vec<_>) = tools
            .map(|(name, score)| {
                let always = self.always.contains(name.as_str());
                Pick { name, score, reasons: Vec::new(), always }
            })
            .partition(|pick| pick.always);
        always.sort_by(|a, b| a.name.cmp(&b.name));
        rest.retain(|pick| pick.score > 0.0 && pick.score >= self.min_score);
        rest.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
        rest.truncate(self.most);
        always.into_iter().chain(rest).collect()
    }
}

/// At most three tools with a score of 0.05 or more.
impl Default for PickOptions {
    fn default() -> Self {
        Self::new(3)
    }
}

/// A tool that was picked for a query, with its score and the reasons.
///
/// ```
/// use tool_runtime::catalog::PickOptions;
/// use tool_runtime::{ToolCatalog, ToolError, tool};
///
/// # /// Rolls a die.
/// # #[tool(name = "games__roll", effect = read_only, redact = ["$"])]
/// # fn roll() -> Result<u32, ToolError> { Ok(4) }
/// let catalog = ToolCatalog::builder().tool::<roll>().build()?;
/// let picks = catalog.pick("roll two dice", &PickOptions::new(5));
/// assert_eq!(picks[0].name.as_str(), "games__roll");
/// assert!(picks[0].reasons().any(|(word, field, _share)| (word, field) == ("roll", "name")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pick {
    /// The name of the tool.
    pub name: ToolName,
    /// The score, from 0 to 1: the share of the best score that a tool could have for this query, 1 for a tool whose
    /// name is in the query, or the score of a [`Scorer`]. Scores of different queries are not comparable.
    pub score: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<PickReason>,
    /// Whether the options pick the tool for every query.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

impl Pick {
    /// Returns the words of the query that were found, the most important first. Each item has the word without case
    /// and accents (or two adjacent words), the part of the definition that contains it (`name`, `description`,
    /// `argument`, `argument_description`, `argument_value`, `namespace` or `also`), and its share of the score, from 0
    /// to 1. Empty if a [`Scorer`] set the score.
    pub fn reasons(&self) -> impl Iterator<Item = (&str, &'static str, f64)> {
        self.reasons.iter().map(|reason| (&*reason.word, reason.field(), reason.share))
    }
}

impl PickIndex {
    /// Picks from the tools whose slot (the result of [`insert`](Self::insert)) `among` accepts.
    pub fn pick(&self, query: &str, options: &PickOptions, among: &dyn Fn(usize) -> bool) -> Vec<Pick> {
        let always = |name: &ToolName| options.always.contains(name.as_str());
        let ranked = self.rank(query, among, options.most.saturating_add(options.always.len()));
        let (first, rest): (Vec<_>, Vec<_>) = ranked
            .into_iter()
            .map(|one| Pick { always: always(&one.name), name: one.name, score: one.score, reasons: one.reasons })
            .partition(|pick| pick.always);
        let rest = rest.into_iter().filter(|pick| pick.score >= options.min_score).take(options.most);
        let mut picked: Vec<_> = options
            .always
            .iter()
            .filter_map(|name| {
                let slot = self.slot(name).filter(|slot| among(*slot))?;
                let name = self.tool(slot)?.name.clone();
                let ranked = first.iter().find(|pick| pick.name == name).cloned();
                Some(ranked.unwrap_or(Pick { name, score: 0.0, reasons: Vec::new(), always: true }))
            })
            .collect();
        picked.extend(rest);
        picked
    }
}
