//! Trust labels: their sources ([`LabelRule`]) and their effects on the rest of a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::policy::parse;
use crate::tool::ToolEffect;

/// The sources and effects of one label: a mark that a run never loses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LabelRule {
    /// Tools whose results put the label on the run.
    #[serde(deserialize_with = "parse::names")]
    pub from_tools: BTreeSet<String>,
    /// Tags of tools whose results put the label on the run.
    pub from_tags: BTreeSet<String>,
    /// The application puts the label on runs, with `RunOptions::label`.
    pub from_run: bool,
    /// Effects whose calls wait for a person once the run has the label.
    pub require_approval_for_effects: BTreeSet<ToolEffect>,
    /// Effects whose calls are denied once the run has the label.
    pub deny_effects: BTreeSet<ToolEffect>,
}

impl LabelRule {
    /// The label that a result of a discovered tool (`mcp__`) always puts on its run.
    pub(crate) const UNTRUSTED: &str = "untrusted";
}
