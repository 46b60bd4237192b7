//! Explanations of a policy's decisions.

use std::collections::BTreeSet;

use crate::call::Decision;
use crate::policy::ToolPolicy;
use crate::policy::cedar::CedarRules;
use crate::policy::decision::{ReadOnce, Strictest};
use crate::policy::subject::{PolicyContext, Subject};
use crate::text::pointer;

impl ToolPolicy {
    /// Returns the decision, as [`admit`](Self::admit) and [`decide`](Self::decide) make it, and every rule that denied
    /// the call or required an approval.
    pub(crate) fn explain(
        &self,
        context: &PolicyContext<'_>,
        tool: &Subject<'_>,
        arguments: Option<&str>,
    ) -> (Decision, Vec<Decision>) {
        let mut said = Strictest::heard();
        let arguments = arguments.map(ReadOnce::new);
        let decision = self.judge(context, tool, arguments.as_ref(), &mut said);
        (decision, said.heard.unwrap_or_default())
    }

    /// The labels that rules name.
    pub(crate) fn named_labels(&self) -> BTreeSet<&str> {
        let cedar = self.data().cedar.iter().flat_map(CedarRules::labels);
        self.data().labels.keys().chain(cedar).map(String::as_str).collect()
    }

    /// The graphs that rules name, as callers or with a budget.
    pub(crate) fn named_graphs(&self) -> impl Iterator<Item = &str> {
        let callers = self.data().callers.keys().filter_map(|caller| caller.strip_prefix("graph:"));
        callers.chain(self.data().budgets.graphs.keys().map(String::as_str))
    }

    /// Whether a decision on the tool depends on arguments.
    pub(crate) fn reads_arguments(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|rule| !rule.arguments.is_empty())
            || self.data().cedar.as_ref().is_some_and(CedarRules::reads_arguments)
    }

    /// Whether a decision on the tool depends on this argument.
    pub(crate) fn reads(&self, tool: &str, argument: &str) -> bool {
        let first = |path: &str| pointer::split(path).into_iter().flatten().next().is_some_and(|name| name == argument);
        self.tool(tool).is_some_and(|rule| rule.arguments.iter().any(|rule| first(&rule.pointer)))
            || self.data().cedar.as_ref().is_some_and(|cedar| cedar.reads(argument))
    }
}
