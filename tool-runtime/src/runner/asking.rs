//! Which rules of a policy can ask for an approval, so that nobody forgets to say whether there is somebody who gives it.

use std::collections::BTreeSet;

use crate::catalog::Entry;
use crate::policy::{RuleVerdict, ToolPolicy};
use crate::tool::NoSchemaMode;

/// Every rule that can ask for an approval of a call of one of these tools, in the policy's own terms, each once.
pub(super) fn rules<'e>(policy: &ToolPolicy, tools: impl Iterator<Item = &'e Entry>) -> Vec<String> {
    let (data, mut rules, mut any) = (policy.data(), BTreeSet::new(), false);
    for entry in tools {
        of_tool(policy, entry, &mut rules);
        any = true;
    }
    if any && data.repair.require_approval && !data.repair.allowed.is_empty() {
        rules.insert("repair.require_approval".to_owned());
    }
    rules.into_iter().collect()
}

fn of_tool(policy: &ToolPolicy, entry: &Entry, rules: &mut BTreeSet<String>) {
    let (data, name) = (policy.data(), entry.spec.name.as_str());
    let effect = policy.effect_of(name, entry.spec.effect);
    let asks = |verdict: &RuleVerdict| *verdict == RuleVerdict::RequireApproval;
    if data.require_approval_for_tools.contains(name) {
        rules.insert(format!("require_approval_for_tools = [\"{name}\"]"));
    }
    if data.require_approval_for_effects.contains(&effect) {
        rules.insert(format!("require_approval_for_effects = [\"{effect}\"]"));
    }
    let tags = entry.spec.tags.iter().filter(|tag| data.tags.get(&***tag).is_some_and(asks));
    rules.extend(tags.map(|tag| format!("tags.{tag}")));
    let labels = data.labels.iter().filter(|(_, rule)| rule.require_approval_for_effects.contains(&effect));
    rules.extend(labels.map(|(label, _)| format!("labels.{label}.require_approval_for_effects")));
    if data.tools.get(name).is_some_and(|rule| rule.arguments.iter().any(|rule| asks(&rule.verdict))) {
        rules.insert(format!("tools.{name}.arguments"));
    }
    if entry.spec.no_schema == Some(NoSchemaMode::ApproveEach) {
        rules.insert(format!("`no_schema_mode = approve_each` of `{name}`"));
    }
}
