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
    /// the call or required an approval. Without `arguments` it is the decision before they are read.
    ///
    /// ```
    /// use tool_runtime::ToolEffect;
    /// use tool_runtime::policy::{PolicyContext, Subject, ToolPolicy};
    ///
    /// let policy = ToolPolicy::from_toml(
    ///     r#"
    ///     allowed_tools = ["mail__send"]
    ///     require_approval_for_tools = ["mail__send"]
    ///     require_approval_for_effects = ["external_side_effect"]
    ///     "#,
    /// )?;
    /// let send = Subject::new("mail__send", ToolEffect::ExternalSideEffect);
    /// let (decision, rules) = policy.explain(&PolicyContext::default(), &send, Some("{}"));
    /// assert_eq!(decision.rule, "require_approval_for_tools");
    /// assert_eq!(rules.len(), 2);
    /// # Ok::<(), tool_runtime::policy::PolicyError>(())
    /// ```
    #[must_use]
    pub fn explain(
        &self,
        context: &PolicyContext<'_>,
        tool: &Subject<'_>,
        arguments: Option<&str>,
    ) -> (Decision, Vec<Decision>) {
        let mut strictest = Strictest::keeping_all();
        let arguments = arguments.map(ReadOnce::new);
        let decision = self.judge(context, tool, arguments.as_ref(), &mut strictest);
        (decision, strictest.all.unwrap_or_default())
    }

    /// Returns the labels that rules name.
    #[must_use]
    pub fn named_labels(&self) -> BTreeSet<&str> {
        let cedar = self.data().cedar.iter().flat_map(CedarRules::labels);
        self.data().labels.keys().chain(cedar).map(String::as_str).collect()
    }

    /// Returns the graphs that rules name, as callers or with a budget.
    pub fn named_graphs(&self) -> impl Iterator<Item = &str> {
        let callers = self.data().callers.keys().filter_map(|caller| caller.strip_prefix("graph:"));
        callers.chain(self.data().budgets.graphs.keys().map(String::as_str))
    }

    /// Whether a decision on the tool depends on its arguments.
    #[must_use]
    pub fn reads_arguments(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|rule| !rule.arguments.is_empty())
            || self.data().cedar.as_ref().is_some_and(CedarRules::reads_arguments)
    }

    /// Whether a decision on the tool depends on this argument. A record masks sensitive arguments, so a decision that
    /// reads one cannot be made again from the record.
    #[must_use]
    pub fn reads_argument(&self, tool: &str, argument: &str) -> bool {
        let first = |path: &str| pointer::split(path).into_iter().flatten().next().is_some_and(|name| name == argument);
        self.tool(tool).is_some_and(|rule| rule.arguments.iter().any(|rule| first(&rule.pointer)))
            || self.data().cedar.as_ref().is_some_and(|cedar| cedar.reads(argument))
    }
}
