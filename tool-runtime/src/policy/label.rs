//! Trust labels: where they come from ([`LabelRule`]) and what they mean for the rest of a run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::policy::ToolPolicy;
use crate::policy::decision::Subject;
use crate::policy::parse;
use crate::tool::ToolEffect;

/// The label that a result of a discovered tool (`mcp__`) always puts on its run.
pub const UNTRUSTED: &str = "untrusted";

/// One label: which results put it on a run, and what it then means. A run never loses a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelRule {
    /// Tools whose results put the label on the run.
    #[serde(deserialize_with = "parse::names")]
    pub from_tools: BTreeSet<String>,
    /// Tags of tools whose results put the label on the run.
    pub from_tags: BTreeSet<String>,
    /// Effects whose calls wait for a person once the run has the label.
    pub require_approval_for_effects: BTreeSet<ToolEffect>,
    /// Effects whose calls are denied once the run has the label.
    pub deny_effects: BTreeSet<ToolEffect>,
}

impl ToolPolicy {
    /// The labels that a result of this tool puts on its run, each once.
    pub fn labels_of<'a>(&'a self, tool: &Subject<'a>) -> impl Iterator<Item = &'a str> + 'a {
        let (name, tags) = (tool.name, tool.tags);
        let discovered = is_discovered(name).then_some(UNTRUSTED);
        let ruled = self.data().labels.iter().filter(move |(label, rule)| {
            let named = rule.from_tools.contains(name) || tags.iter().any(|tag| rule.from_tags.contains(&**tag));
            named && !(discovered.is_some() && label.as_str() == UNTRUSTED)
        });
        discovered.into_iter().chain(ruled.map(|(label, _)| label.as_str()))
    }
}

/// Discovered tools live under the reserved namespace.
pub(super) fn is_discovered(name: &str) -> bool {
    name.starts_with("mcp__")
}
